#include "merge/lives.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;
using namespace cudabpf::merge;

namespace {

std::optional<Twice> twice(const std::vector<Life>& a, const std::vector<Life>& b,
                           std::uint64_t offset = 0) {
  return find_twice({{0, 0, &a}, {1, offset, &b}});
}

}  // namespace

TEST_CASE("A process that two traces have at the same time is found") {
  auto found = twice({{7, 10, 20}, {8, 0, 5}}, {{7, 19, 30}});
  REQUIRE(found);
  CHECK(found->pid == 7);
  CHECK(found->first == 0);
  CHECK(found->second == 1);
  CHECK(twice({{7, 10, 20}}, {{7, 0, 11}}));
  CHECK(twice({{7, 10, 20}}, {{7, 0, 2}}, 15));
  CHECK(twice({{7, 0, 100}}, {{7, 40, 40}}));
}

TEST_CASE("A process that is in one trace after the other is not twice there") {
  CHECK_FALSE(twice({{7, 10, 20}}, {{7, 20, 30}}));
  CHECK_FALSE(twice({{7, 10, 20}}, {{8, 10, 20}}));
  CHECK_FALSE(twice({{7, 10, 20}}, {{7, 10, 20}}, 10));
  // The pid is used again, in the same trace.
  CHECK_FALSE(twice({{7, 0, 5}, {7, 9, 12}}, {{7, 5, 9}}));
  CHECK_FALSE(twice({{7, 0, 30}, {7, 10, 12}}, {{7, 30, 40}}));
}
