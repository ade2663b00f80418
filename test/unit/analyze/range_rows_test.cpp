// The program's own ranges as rows of pictures over time.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "analyze/report/report_timeline.hpp"
#include "analyze/timeline/timeline.hpp"
#include "support/range_lines.hpp"
#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string span(const std::string& label, int number, int from_us, int us,
                 const std::string& more = R"(,"pid":7,"tid":7)") {
  return fmt::format(
      R"({{"type":"range","op":"push","label":"{}","ts":{}000,"duration_us":{}.000,"range":{}{}}})"
      "\n",
      label, from_us, us, number, more);
}

// More calls than are listed one by one.
std::string calls_in(int number) {
  std::string lines;
  for (int i = 0; i < 100; i++) {
    std::string line = launched_in(i + 1, number);
    std::string ts = fmt::format("\"ts\":{}", 101 + i);
    lines += line.replace(line.find(ts), ts.size(), fmt::format("\"ts\":{}000", 10 * i));
  }
  return lines;
}

std::string nested() {
  return named(1, "request") + named(2, "prefill", 1) + named(3, "decode", 1) + calls_in(3) +
         span("prefill", 2, 0, 300) + span("decode", 3, 300, 690) + span("request", 1, 0, 1000);
}

}  // namespace

TEST_CASE("A thread's ranges are rows above its calls, the outermost first") {
  TraceText trace(nested());
  Timeline timeline(trace.names(), Part{0, 1'000'000});
  trace.show(timeline);
  std::string page = page_text([&](Page& to) { add_timeline(to, timeline); }, 100);
  std::size_t outer = page.find("  ranges, 1  "), inner = page.find("    ranges, 2");
  REQUIRE(outer != std::string::npos);
  CHECK(outer < inner);
  CHECK(inner < page.find("  thread 7"));
  CHECK_THAT(page, ContainsSubstring("│request───"));
  CHECK_THAT(page, ContainsSubstring("│prefill──"));
  CHECK_THAT(page, ContainsSubstring("──│decode──"));

  Json thread = timeline_json(timeline)["processes"][0]["threads"][0];
  REQUIRE(thread["ranges"].size() == 2);
  CHECK(thread["ranges"][1][1] ==
        Json{{"from_us", 300.0}, {"to_us", 990.0}, {"count", 1}, {"name", "decode"}});
}

TEST_CASE("Marks, and ranges whose names are not known, have no bar") {
  TraceText trace(
      named(1, "a") + calls_in(1) +
      R"({"type":"range","op":"mark","label":"m","ts":9,"pid":7,"tid":7,"range":1})"
      "\n"
      R"({"type":"range","op":"push","label":null,"ts":9,"duration_us":5.000,"pid":7,"tid":7})"
      "\n");
  Timeline timeline(trace.names(), Part{0, 1'000'000});
  trace.show(timeline);
  REQUIRE(timeline.threads() == 1);
  CHECK(timeline.thread(0).ranges.empty());
}

TEST_CASE("A report's page has a lane for each depth of a thread's ranges") {
  TraceText trace(nested() + span("apart", 1, 2000, 5, R"(,"pid":7,"tid":8)"));
  ReportTimeline timeline(trace.names());
  trace.show(timeline);
  REQUIRE(timeline.threads().size() == 2);
  const auto& ranges = timeline.threads()[0].ranges;
  REQUIRE(ranges.size() == 2);
  REQUIRE(ranges[1].size() == 2);
  const LaneEvent& kind = timeline.kinds().all()[ranges[1][1].kind];
  CHECK(timeline.names().text(kind.name) == "decode");
  CHECK(kind.category == Category::range);
  CHECK(ranges[1][1].begin == 300'000);
  CHECK(ranges[1][1].end == 990'000);
  CHECK(timeline.threads()[1].ranges.size() == 1);
}
