#include "analyze/ranges/ranges.hpp"

#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>

#include "support/range_lines.hpp"
#include "support/trace_text.hpp"

using namespace cudabpf::analyze;

namespace {

// "name count total/gpu+here" of each row, below what is around it.
std::string rows_of(const RangeTotals& ranges) {
  std::string all;
  for (const auto& row : ranges.rows())
    all +=
        fmt::format("{}{} x{} {}/{}+{}\n", std::string(row.depth, ' '), row.name, row.figures.count,
                    row.figures.total / 1000, row.figures.gpu / 1000, row.gpu_here / 1000);
  return all;
}

struct NamedTotals {
  explicit NamedTotals(const std::string& lines)
      : trace(lines, R"(,"gpu_timing":"nodes","ranges":true)"), ranges(trace.names()) {
    trace.show(ranges);
  }
  TraceText trace;
  RangeTotals ranges;
};

}  // namespace

TEST_CASE("A GPU's work counts in the range of its call, and in those around it") {
  NamedTotals totals(named(1, "outer") + named(2, "inner", 1) + launched_in(1, 2) +
                     range(2, 10, 30) + launched_in(2, 1) + range(1, 5, 100) + launched_in(3, 0) +
                     worked(1, 7) + worked(2, 20) + worked(3, 500));
  CHECK(rows_of(totals.ranges) ==
        "outer x1 100/27+20\n"
        " inner x1 30/7+7\n");
  CHECK(totals.ranges.in_none().gpu == 500'000);
  CHECK(totals.ranges.in_none().calls == 1);
  CHECK(totals.ranges.gpu() == 527'000);
}

TEST_CASE("The same names are one row, whatever their numbers are") {
  NamedTotals totals(named(1, "a") + range(1, 1, 5) + named(9, "a") + range(9, 10, 6) +
                     named(3, "a", 0, "other") + range(3, 20, 1));
  CHECK(rows_of(totals.ranges) == "a x2 11/0+0\na x1 1/0+0\n");
}

TEST_CASE("Names that differ only in digits are one row where there are many") {
  auto steps = [](int count) {
    std::string lines = named(1, "run");
    for (int i = 0; i < count; i++)
      lines += named(10 + i, fmt::format("step {}", i), 1) + named(1000 + i, "layer", 10 + i) +
               launched_in(i + 1, 1000 + i) + range(1000 + i, i * 10, 1) + range(10 + i, i * 10, 2);
    for (int i = 0; i < count; i++) lines += worked(i + 1, 3);
    return lines + range(1, 0, 10'000);
  };
  SECTION("few") {
    NamedTotals totals(steps(16));
    CHECK(totals.ranges.rows().size() == 1 + 2 * 16);
  }
  SECTION("many") {
    NamedTotals totals(steps(300));  // more than are kept apart while the trace is read
    CHECK(rows_of(totals.ranges) ==
          "run x1 10000/900+0\n"
          " step # x300 600/900+0\n"
          "  layer x300 300/900+900\n");
    CHECK(totals.ranges.rows()[1].names == 300);
  }
}

TEST_CASE("What is deeper than is kept apart is in the range at that depth") {
  std::string lines;
  for (int depth = 0; depth < 100; depth++)
    lines += named(depth + 1, fmt::format("r{}", depth), depth);
  NamedTotals totals(lines + launched_in(1, 100) + worked(1, 4));
  REQUIRE(totals.ranges.rows().size() == 32);
  CHECK(totals.ranges.rows().back().gpu_here == 4000);
  CHECK(totals.ranges.rows().front().figures.gpu == 4000);
}

TEST_CASE("Ranges without an end are counted, and not timed; marks are no ranges") {
  NamedTotals totals(
      named(1, "a") + range(1, 1, 5) +
      R"({"type":"range","op":"push","label":"a","ts":9,"pid":7,"tid":7,"range":1,"unfinished":true})"
      "\n"
      R"({"type":"range","op":"mark","label":"m","ts":9,"pid":7,"tid":7,"range":1})"
      "\n"
      R"({"type":"range","op":"push","label":"no room","ts":9,"duration_us":1.000,"pid":7,"tid":7})"
      "\n");
  CHECK(rows_of(totals.ranges) == "a x2 5/0+0\n");
  CHECK(totals.ranges.unfinished() == 1);
  CHECK(totals.ranges.marks() == 1);
  CHECK(totals.ranges.unnamed() == 1);
}

TEST_CASE("The outermost ranges, or those in one that is around all") {
  auto names = [](const NamedTotals& totals) {
    std::string all;
    for (const auto& row : totals.ranges.outermost()) all += row.name + " ";
    return all;
  };
  NamedTotals totals(named(1, "serve") + named(2, "a", 1) + named(3, "b", 1) + named(4, "c", 3) +
                     range(2, 1, 5) + range(4, 10, 6) + range(3, 9, 8) + range(1, 0, 50));
  CHECK(names(totals) == "b a ");
  CHECK(outermost_ranges_text(totals.ranges) == "serve / b 8.00 µs; serve / a 5.00 µs");
  // A part may have no more than what is inside.
  NamedTotals part(named(1, "serve") + named(2, "a", 1) + named(3, "b") + range(2, 1, 5) +
                   range(3, 9, 8));
  CHECK(names(part) == "b a ");
}
