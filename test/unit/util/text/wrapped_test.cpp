#include "util/text/wrapped.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

using namespace cudabpf;
using Lines = std::vector<std::string_view>;

TEST_CASE("A text is broken between words") {
  CHECK(wrapped("", 10).empty());
  CHECK(wrapped("one two", 10) == Lines{"one two"});
  CHECK(wrapped("one two three", 7) == Lines{"one two", "three"});
  CHECK(wrapped("one two three", 8) == Lines{"one two", "three"});
  CHECK(wrapped("one two three", 6) == Lines{"one", "two", "three"});
}

TEST_CASE("A number stays with its unit") {
  CHECK(wrapped("it took 30 ms", 10) == Lines{"it took", "30 ms"});
}

TEST_CASE("A word that is longer than a line is broken, and every line holds something") {
  CHECK(wrapped("abcdefgh", 3) == Lines{"abc", "def", "gh"});
  CHECK(wrapped("東京都", 4) == Lines{"東京", "都"});
  CHECK(wrapped("東京", 1) == Lines{"東", "京"});
  CHECK(wrapped("12 34 56", 5) == Lines{"12 34", "56"});
  CHECK(wrapped("ab", 0) == Lines{"a", "b"});
  CHECK(wrapped("\xff\xff", 1) == Lines{"\xff", "\xff"});
}
