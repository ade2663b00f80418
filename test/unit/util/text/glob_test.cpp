#include "util/text/glob.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

TEST_CASE("A pattern matches the whole name") {
  struct Case {
    const char* pattern;
    const char* name;
    bool match;
  };
  const Case cases[] = {
      {"cuMemAlloc", "cuMemAlloc", true},
      {"cuMemAlloc", "cuMemAlloc_v2", false},
      {"cuMemAlloc", "cuMem", false},
      {"", "", true},
      {"", "a", false},
      {"*", "", true},
      {"*", "cuInit", true},
      {"cuMem*", "cuMem", true},
      {"cuMem*", "cuMemAlloc_v2", true},
      {"cuMem*", "cumemAlloc", false},
      {"*Async", "cuMemcpyAsync", true},
      {"*Async", "cuMemcpyAsync_ptsz", false},
      {"cu*Async*", "cuMemcpyHtoDAsync_v2", true},
      {"*a*a*b", "aaaaab", true},
      {"*a*a*b", "aaaaa", false},
      {"**", "x", true},
      {"?", "", false},
      {"?", "x", true},
      {"cuMemcpy?toH", "cuMemcpyDtoH", true},
      {"cuMemcpy?toH", "cuMemcpytoH", false},
      {"cuMemcpy[DH]toH", "cuMemcpyHtoH", true},
      {"cuMemcpy[DH]toH", "cuMemcpyAtoH", false},
      {"v[0-9]", "v7", true},
      {"v[0-9]", "vx", false},
      {"v[!0-9]", "vx", true},
      {"v[^0-9]", "v7", false},
      {"[a-cx]", "x", true},
      {"[a-cx]", "d", false},
      {"[]a]", "]", true},
      {"[]a]", "b", false},
      {"[!]a]", "b", true},
      {"[!]a]", "]", false},
      {"[a-]", "-", true},
      {"[z-a]", "m", false},
      {"*[0-9]x", "a1b2x", true},
      {"a[b", "a[b", true},
      {"a[b", "ab", false},
      {"[", "[", true},
      {"[!", "[!", true},
      {"[*", "[abc", true},
      {"x[]", "x[]", true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.pattern, c.name);
    CHECK(glob_match(c.pattern, c.name) == c.match);
  }
}

TEST_CASE("Many stars cost no more than the product of the lengths") {
  std::string pattern, name(20'000, 'a');
  for (int i = 0; i < 1000; i++) pattern += "*a";
  CHECK(glob_match(pattern, name));
  CHECK_FALSE(glob_match(pattern + "b", name));
}

TEST_CASE("A list of patterns is separated by commas") {
  CHECK(split_patterns("cuMem*,cuLaunch*") == std::vector<std::string>{"cuMem*", "cuLaunch*"});
  CHECK(split_patterns(" cuInit , ,\tcuMem* ,") == std::vector<std::string>{"cuInit", "cuMem*"});
  CHECK(split_patterns("").empty());
  CHECK(split_patterns(" , ").empty());

  std::vector<std::string> patterns = split_patterns("cuMem*,*Launch*");
  CHECK(glob_match_any(patterns, "cuMemFree_v2"));
  CHECK(glob_match_any(patterns, "cuLaunchKernel"));
  CHECK_FALSE(glob_match_any(patterns, "cuInit"));
  CHECK_FALSE(glob_match_any({}, "cuInit"));
}
