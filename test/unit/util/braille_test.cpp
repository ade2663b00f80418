#include "util/page/braille.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;
using Values = std::vector<std::optional<double>>;
using Lines = std::vector<std::string>;

TEST_CASE("a graph of dots has two values in each column") {
  CHECK(braille_graph(Values{0, 1, 2, 3, 4, 4, 1, 0}, 4, 1, 4, true) == Lines{"⢀⣴⣿⡀"});
  CHECK(braille_graph(Values{4, 4, 8, 8}, 8, 2, 2, true) == Lines{" ⣿", "⣿⣿"});
  CHECK(braille_graph(Values{5, 8}, 8, 2, 1, true) == Lines{"⣸", "⣿"});
}

TEST_CASE("the last values are at the right, and older ones fall off") {
  CHECK(braille_graph(Values{4, 4}, 4, 1, 3, true) == Lines{"  ⣿"});
  CHECK(braille_graph(Values{4, 4, 0, 0, 0, 0}, 4, 1, 2, true) == Lines{"  "});
  CHECK(braille_graph({}, 4, 1, 2, true) == Lines{"  "});
}

TEST_CASE("whatever is not 0 has a dot, and nothing is higher than the graph") {
  CHECK(braille_graph(Values{0.001, 100}, 4, 1, 1, true) == Lines{"⣸"});
  CHECK(braille_graph(Values{std::nullopt, -1}, 4, 1, 1, true) == Lines{" "});
  CHECK(braille_graph(Values{1, 1}, 0, 1, 1, true) == Lines{" "});
}

TEST_CASE("without UTF-8 a graph is ASCII") {
  CHECK(braille_graph(Values{0, 1, 2, 1, 3, 0, 4, 4, 0, 0}, 4, 1, 5, false) == Lines{".:|# "});
  CHECK(braille_graph(Values{8, 8, 4, 4}, 8, 2, 2, false) == Lines{"# ", "##"});
}

TEST_CASE("a bar is as long as its part") {
  CHECK(bar(0, 4, true) == "    ");
  CHECK(bar(1, 4, true) == "████");
  CHECK(bar(0.5, 4, true) == "██  ");
  CHECK(bar(0.53, 4, true) == "██▏ ");
  CHECK(bar(0.0001, 4, true) == "▏   ");
  CHECK(bar(7, 2, true) == "██");
  CHECK(bar(0.5, 4, false) == "||  ");
  CHECK(bar(0.01, 4, false) == "|   ");
}
