#include "replay/ranges.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf::replay;
using List = std::vector<Range>;

TEST_CASE("Ranges are merged where they overlap or touch") {
  CHECK(merged({{8, 9}, {0, 2}, {2, 4}, {6, 6}, {1, 3}}) == List{{0, 4}, {8, 9}});
  CHECK(merged({}).empty());
  CHECK(rounded({{3, 5}, {9, 10}, {17, 18}}, 8) == List{{0, 24}});
  CHECK(rounded({{8, 16}, {33, 34}}, 8) == List{{8, 16}, {32, 40}});
}

TEST_CASE("What is left of ranges, and which parts of them lie in another") {
  List ranges{{0, 4}, {6, 10}};
  CHECK(without(ranges, {3, 7}) == List{{0, 3}, {7, 10}});
  CHECK(without(ranges, {1, 2}) == List{{0, 1}, {2, 4}, {6, 10}});
  CHECK(without(ranges, {4, 6}) == ranges);
  CHECK(without(ranges, {0, 10}).empty());
  CHECK(parts_in(ranges, {3, 7}) == List{{3, 4}, {6, 7}});
  CHECK(parts_in(ranges, {4, 6}).empty());
  CHECK(have(ranges, {6, 8}));
  CHECK_FALSE(have(ranges, {3, 5}));
  CHECK(size_of(ranges) == 8);
}
