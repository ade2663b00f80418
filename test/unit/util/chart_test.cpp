#include "util/page/chart.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>

using namespace cudabpf;
using Numbers = std::vector<std::uint64_t>;

TEST_CASE("A curve of characters") {
  CHECK(spark(Numbers{0, 1, 50, 100}, 100) == " ▁▄█");
  CHECK(spark(Numbers{0, 0}, 0) == "  ");
  CHECK(tall_spark(Numbers{25, 50, 75, 100}, 100, 2) == std::vector<std::string>{"  ▄█", "▄███"});
}

TEST_CASE("Marks are round, and no more than requested") {
  CHECK(time_marks(0, 1'000'000, 5) == Numbers{0, 500'000, 1'000'000});
  CHECK(time_marks(1'300, 2'900, 4) == Numbers{1'500, 2'000, 2'500});
  CHECK(time_marks(5, 5, 4) == Numbers{5});
  CHECK(byte_marks(100 << 20, 4) == Numbers{0, 32 << 20, 64 << 20, 96 << 20});
  constexpr auto MAX = std::numeric_limits<std::uint64_t>::max();
  CHECK(time_marks(0, MAX, 5).size() <= 6);
  CHECK(byte_marks(MAX, 3).size() <= 4);
}

TEST_CASE("A mark's time has the digits that matter") {
  CHECK(mark_time(0, 5) == "0");
  CHECK(mark_time(1'500'000'000, 500'000'000) == "1.5 s");
  CHECK(mark_time(2'000'000'000, 1'000'000'000) == "2 s");
  CHECK(mark_time(200'000, 100'000) == "200 µs");
  CHECK(mark_time(3'000'050'000, 50'000) == "3.00005 s");
}

TEST_CASE("An axis has its marks where their times are") {
  TextAxis axis = time_axis({{{0, 40'000'000}}, 40, 0});
  CHECK(axis.line == "┴───────────────────┴──────────────────┴");
  CHECK(axis.labels == "0                   20 ms");
}

TEST_CASE("Where time is folded, the axis breaks and says how much") {
  TimeScale scale({{0, 10'000'000}, {90'000'000, 120'000'000}}, 42, FOLD_WIDTH);
  REQUIRE(scale.pieces().size() == 2);
  CHECK(scale.pieces()[0].width == 10);
  CHECK(scale.pieces()[1].at == 12);
  CHECK(scale.pieces()[1].width == 30);
  CHECK(scale.position(5'000'000) == 5);
  CHECK(scale.position(50'000'000) == 10);  // in the fold: where it begins
  CHECK(scale.position(105'000'000) == 27);
  CHECK(scale.position(999'000'000) == 42);
  TextAxis axis = time_axis(scale);
  CHECK(axis.line == "┴─────────╱╱──────────┴──────────────────┴");
  CHECK(axis.labels.find("80.0 ms folded") != std::string::npos);
}

TEST_CASE("However many pieces a scale has, each has a column") {
  std::vector<TimeSpan> spans;
  for (std::uint64_t i = 0; i < 9; i++) spans.push_back({i * 1'000'000, i * 1'000'000 + 1 + i});
  spans.push_back({10'000'000, 10'900'000});
  TimeScale scale(spans, 55, FOLD_WIDTH);
  std::size_t end = 0;
  for (const auto& piece : scale.pieces()) {
    CHECK(piece.width >= 1);
    CHECK(piece.at == (end ? end + FOLD_WIDTH : 0));
    end = piece.at + piece.width;
  }
  CHECK(end == 55);
  CHECK_FALSE(time_axis(scale).line.empty());
}

TEST_CASE("A moment between two folds has a place of its own") {
  TimeScale scale({{0, 100}, {500, 500}, {900, 1000}}, 84, 2);
  REQUIRE(scale.pieces().size() == 3);
  CHECK(scale.pieces()[1].width == 1);
  CHECK(scale.pieces()[1].position(500) == static_cast<double>(scale.pieces()[1].at));
  CHECK(scale.position(500) == static_cast<double>(scale.pieces()[1].at));
  CHECK(scale.time() == 200);
  TimeScale moment({{7, 7}}, 10, 2);
  CHECK(moment.position(7) == 0);
  CHECK(moment.pieces().front().width == 10);
}
