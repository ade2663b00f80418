#include "merge/call_numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>

using namespace cudabpf::merge;

TEST_CASE("Ids of several traces become ids that no two calls share") {
  std::uint64_t given = 1;
  CallNumbers a(given), b(given);
  std::set<std::uint64_t> seen;
  for (std::uint64_t id = 1; id < 20'000; id++)
    for (CallNumbers* of : {&a, &b}) {
      REQUIRE(of->add(id));
      seen.insert(of->of(id));
    }
  CHECK(seen.size() == 2 * 19'999);
  CHECK_FALSE(seen.contains(0));
  CHECK(*seen.rbegin() < 2 * 19'999 + 3 * 4096);  // they are close to each other
  // The same ones are asked for later, in any order, and rise within a trace.
  CHECK(a.of(1) < a.of(2));
  CHECK(a.of(4095) < a.of(4096));
  CHECK(a.of(19'999) > a.of(5));
  CHECK(a.of(0) == 0);
}

TEST_CASE("Ids that no program's calls have are refused") {
  std::uint64_t given = 1;
  CallNumbers numbers(given);
  std::uint64_t admitted = 0;
  while (admitted < (std::uint64_t{1} << 20) && numbers.add(admitted << 40)) admitted++;
  CHECK(admitted == std::uint64_t{1} << 18);
  CHECK(numbers.add(5));
}
