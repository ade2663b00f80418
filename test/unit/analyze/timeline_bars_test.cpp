// The bars of a timeline: how they become few, and what each represents.
#include "analyze/timeline/timeline_bars.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <utility>

#include "analyze/timeline/timeline_tooltips.hpp"

#include "support/drawn_timeline.hpp"
#include "support/fewer.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

// The tooltips of a picture that are of several calls.
std::vector<std::string> tooltips_of_several(const std::string& svg) {
  std::vector<std::string> tooltips;
  constexpr std::string_view BEGIN = "<title>", END = "</title>";
  for (std::size_t at = svg.find(BEGIN); at != std::string::npos; at = svg.find(BEGIN, at)) {
    at += BEGIN.size();
    std::string one = svg.substr(at, svg.find(END, at) - at);
    if (one.find(" calls, ") != std::string::npos) tooltips.push_back(one);
  }
  return tooltips;
}

}  // namespace

TEST_CASE("Bars of a picture: all of a few, with what each represents") {
  Drawn trace;
  trace.call("kernel", 0, 10, R"(,"kernel":"a&b")").call("sync", 20, 10);
  trace.call("memory", 45, 2, R"(,"parent":5)").call("memory", 44, 4, R"(,"parent":5)");
  trace.call("memory", 40, 10);
  Analyzed few(trace, 100);
  CHECK(few.timeline.thread(0).bars[CALLS].size() == 3);
  CHECK(few.timeline.thread(0).bars[NESTED].size() == 1);
  CHECK(few.timeline.resolution() == 0);
  std::string svg = few.svg();
  CHECK(tooltips_of_several(svg).empty());
  CHECK_THAT(svg,
             ContainsSubstring("<title>a&amp;b\ncu_kernel, 10.0 µs at 0.000000 s<") &&
                 ContainsSubstring("<title>cu_sync\n10.0 µs at 0.000020 s\nwaits for the GPU<") &&
                 ContainsSubstring("<title>cu_memory\n4.00 µs at 0.000044 s\n1 call inside it<"));
}

TEST_CASE("A picture has the program's ranges above the calls of their thread") {
  Drawn trace;
  trace.call("kernel", 5, 10);
  trace.line(
      R"({"type":"range","op":"push","label":"step <1>","ts":2000,"duration_us":40.000,"pid":1,"tid":1,"range":1})");
  std::string svg = Analyzed(trace, 100).svg();
  CHECK_THAT(svg, ContainsSubstring("<title>step &lt;1&gt;\n40.0 µs at 0.000002 s<") &&
                      ContainsSubstring(">ranges of 1</text>"));
  CHECK(svg.find(">ranges of 1<") < svg.find(">thread 1<"));
}

TEST_CASE("Several calls as one bar say how many, from when to when, and mostly what") {
  Drawn trace;
  Analyzed analyzed(trace.call("kernel", 0, 1).call("memory", 1, 1).call("sync", 2, 1), 100);
  const auto& row = analyzed.timeline.thread(0).bars[CALLS];
  Bar bar(row[0]);
  bar.absorb(row[1]);
  bar.absorb(row[1]);
  bar.absorb(row[2]);
  CHECK(bar.total().count == 4);
  CHECK(bar.total().time == 4'000);
  CHECK(bar.total().category == Category::memory);
  CHECK(tooltip(analyzed.timeline, bar, BarsOf::thread) ==
        "4 calls, 0.000000 s to 0.000003 s\n4.00 µs in them, 133.3 % of that\n"
        "cu_memory: 2, 2.00 µs; cu_kernel: 1, 1.00 µs; cu_sync: 1, 1.00 µs");
}

TEST_CASE("A picture of a quarter of a million calls is small, and leaves none out") {
  constexpr int MANY = 120'000 / FEWER;
  LineParser parser;
  Timeline timeline(parser.names(), ALL);
  Drawn trace;
  auto show = [&] {
    each_line(parser, std::exchange(trace.text, {}),
              [&](const Line& line) { timeline.line(line); });
  };
  for (int i = 0; i < MANY; i++) {
    trace.tid = i % 7;
    trace.call("kernel", 4 * i, 1,
               R"(,"stream":"0x1","kernel":"k)" + std::to_string(i % 50) + "\"");
    trace.call("memory", 4 * i + 2, 1);
    if (i % 1000 == 0) show();
  }
  show();
  TraceFacts facts;
  facts.last_ts = std::uint64_t{4} * MANY * 1000;
  timeline.finish(facts);
  std::uint64_t calls = 0, bars = 0;
  for (std::size_t i = 0; i < timeline.threads(); i++)
    for (const Bar& bar : timeline.thread(i).bars[CALLS]) {
      calls += bar.total().count;
      bars++;
    }
  CHECK(calls == 2 * MANY);
  CHECK(bars <= 2 * Timeline::MAX_BARS);
  std::string svg = timeline_svg(timeline, "t");
  CHECK(svg.size() < 1'000'000);
  CHECK(svg.size() > 100'000);
  // Each call is in one tooltip of its thread's row.
  std::uint64_t counted = 0;
  for (std::string one : tooltips_of_several(svg)) {
    one.resize(one.find(' '));
    std::erase(one, ',');
    counted += std::stoull(one);
  }
  CHECK(counted <= 2 * MANY);
  CHECK(counted > 2 * MANY - 100);  // but for bars of one call
}

TEST_CASE("No trace is too long for its bars") {
  Drawn trace;
  trace.call("kernel", 0, 10);
  trace.line(R"({"id":9,"type":"sync","name":"cuX","ts":9223372036853000000,)"
             R"("duration_us":1000.000,"pid":1,"tid":1})");
  for (auto window : {std::optional(ALL), std::optional<Timeline::Window>()}) {
    Analyzed analyzed(trace, 1000, window);
    CHECK(analyzed.timeline.thread(0).all.calls == 2);
    CHECK_FALSE(analyzed.page().empty());
    CHECK_FALSE(analyzed.svg().empty());
  }
}

TEST_CASE("A call that did not return is drawn as long as it is counted") {
  Drawn trace;
  trace.call("memory", 300, 100).call("sync", 100, -1, R"(,"unfinished":true)");
  Analyzed whole(trace, 1000);
  const auto& pieces = whole.timeline.pieces();
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[1].category == Category::unfinished);
  CHECK(pieces[1].end == 300'000);
  // It was over before this window began.
  CHECK(Analyzed(trace, 1000, Timeline::Window{350'000, 1'000'000}).timeline.pieces().size() == 1);
}

TEST_CASE("An operation whose return was lost leaves the later ones where they are") {
  Drawn trace;
  trace.call("context", 0, 900);
  for (int i = 0; i < 100; i++) trace.ioctl(100 + 5 * i, 2, 1);
  trace.line(R"({"type":"kernel","op":"ioctl","name":"NV_ESC","ts":90000,"pid":1,"tid":1,)"
             R"("call":1,"unfinished":true})");
  Analyzed analyzed(trace, 1000);
  const BarRow& row = analyzed.timeline.thread(0).bars[DRIVER];
  REQUIRE(row.size() == 101);
  CHECK(row.front().begin == 90'000);
  CHECK(row.front().end == 100'000);
  CHECK(row.front().inside == 0);
}

TEST_CASE("What lies inside an operation is counted with it") {
  Drawn trace;
  trace.call("context", 0, 900).ioctl(120, 2, 1).ioctl(130, 2, 1).ioctl(100, 50, 1);
  Analyzed analyzed(trace, 1000);
  const BarRow& row = analyzed.timeline.thread(0).bars[DRIVER];
  REQUIRE(row.size() == 1);
  CHECK(row.front().inside == 2);
  CHECK(row.front().total().launches == 3);
}

TEST_CASE("A pid that is used again has a picture of its own") {
  Drawn trace;
  trace.call("sync", 0, 10);
  trace.line(R"({"type":"process","op":"exit","ts":40000,"pid":1,"comm":"one"})");
  trace.line(R"({"type":"process","op":"fork","ts":50000,"pid":1,"comm":"two"})");
  trace.call("memory", 60, 10);
  std::string page = Analyzed(trace, 100).page();
  std::size_t second = page.find("process 1 two,");
  CAPTURE(page);
  REQUIRE(second != std::string::npos);
  CHECK(page.find("cu_sync") < second);
  CHECK(page.find("cu_memory") > second);
}

TEST_CASE("Only calls are counted as calls of more threads") {
  Drawn trace;
  for (int i = 0; i < 258; i++) {
    trace.tid = i + 1;
    trace.call("sync", 10 * i, 5);
  }
  trace.ioctl(3000, 5, 258);
  Analyzed analyzed(trace, 4000);
  CHECK(analyzed.timeline.left_out_of_threads() == 2);
}

TEST_CASE("Moments are shown as the page shows them") {
  Drawn trace = many();
  trace.call("sync", 10'000'000, 10);
  Analyzed analyzed(trace, 10'000'020, {});
  TimelineView view = view_of(analyzed.timeline);
  CHECK_THAT(note_of_view(analyzed.timeline, view, {}), ContainsSubstring(" at 0.001920 s"));
  Moments utc(1'700'000'000'000'000'000, Moments::Zone::utc);
  CHECK_THAT(note_of_view(analyzed.timeline, view, utc), ContainsSubstring(" at 22:13:20.0019"));
}
