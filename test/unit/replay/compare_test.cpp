#include "replay/compare.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf::replay;

namespace {

struct Compared {
  Bytes sums;
  std::vector<Difference> differences;
};

Compared compared(const std::string& expected, const std::vector<std::string>& runs,
                  bool was_known = true) {
  Runs all(runs[0], was_known);
  for (std::size_t i = 1; i < runs.size(); i++) all.add(runs[i]);
  Compared result;
  all.compare(0, expected, "memory", 0x1000, result.sums, result.differences);
  return result;
}

}  // namespace

TEST_CASE("Bytes are what the program left, or not") {
  auto [sums, differences] =
      compared("abcdefgh12345678xy", {"abXYefgh12345678xz", "abXYefgh12345678xz"});
  CHECK((sums.compared == 18 && sums.equal == 15 && sums.different == 3));
  REQUIRE(differences.size() == 2);
  CHECK((differences[0].at.value == 0x1002 && differences[0].size == 2));
  CHECK((differences[0].expected == "6364" && differences[0].got == "5859"));
  CHECK(differences[1].at.value == 0x1011);
}

TEST_CASE("Values of which any byte differs between runs are left out") {
  auto [sums, differences] = compared("aaaaaaaabbbbbbbb", {"aXaaaaXYbbbbbbbb", "aXaaaaXZbbbbbbbb"});
  CHECK((sums.equal == 8 && sums.not_deterministic == 8 && sums.different == 0));
  CHECK(differences.empty());
  // In the second run by chance as in the first.
  auto again = compared("aaaaaaaa", {"Xaaaaaaa", "Xaaaaaaa", "aaaaaaaa"});
  CHECK(again.sums.not_deterministic == 8);
}

TEST_CASE("What is judged is no run: only runs show what varies") {
  Runs runs("aaaaaaaabbbbbbbb", true);
  runs.add("aaaaaaaabbbbbbbb");
  runs.judge("Xaaaaaaabbbbbbbb");
  Bytes before, after;
  std::vector<Difference> differences;
  runs.compare(0, "aaaaaaaabbbbbbbb", "memory", 0, before, differences);
  CHECK((before.different == 1 && before.equal == 15 && before.not_deterministic == 0));
  runs.add("aaYaaaaabbbbbbbb");
  runs.compare(0, "aaaaaaaabbbbbbbb", "memory", 0, after, differences);
  CHECK((after.different == 0 && after.equal == 8 && after.not_deterministic == 8));
}

TEST_CASE(
    "Memory that was not captured and that nobody wrote has the byte that it was filled with") {
  std::string first = "abcd\xA5\xA5\xA5\xA5", second = "abcd\x5A\x5A\x5A\x5A";
  auto unknown = compared("abcdwxyz", {first, second, first}, false);
  CHECK((unknown.sums.equal == 4 && unknown.sums.not_written == 4));
  CHECK(unknown.sums.not_deterministic == 0);
  CHECK(compared("abcdwxyz", {first, second}, true).sums.not_deterministic == 8);
}

TEST_CASE("Only the first places are kept, and few bytes of each") {
  std::string expected(400, 'a'), got(400, 'a');
  for (std::size_t i = 0; i < 400; i += 20) got.replace(i, 10, 10, 'b');
  auto [sums, differences] = compared(expected, {got, got});
  CHECK(sums.different == 200);
  REQUIRE(differences.size() == 8);
  CHECK((differences[7].size == 10 && differences[7].got == "6262626262626262"));
}
