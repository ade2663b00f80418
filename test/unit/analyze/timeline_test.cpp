#include "analyze/timeline/timeline.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "support/analyzing.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

// Writes calls and operations at any time, in µs.
struct Drawn {
  std::string text;
  int ids = 0;
  int pid = 1, tid = 1;

  Drawn& call(const std::string& type, int ts, int duration, const std::string& rest = "") {
    text += R"({"id":)" + std::to_string(++ids) + R"(,"type":")" + type +
            R"(","op":"launch","name":"cu_)" + type + R"(","ts":)" + std::to_string(ts * 1000);
    if (duration >= 0) text += R"(,"duration_us":)" + std::to_string(duration) + ".000";
    text += R"(,"pid":)" + std::to_string(pid) + R"(,"tid":)" + std::to_string(tid) + rest + "}\n";
    return *this;
  }
  Drawn& ioctl(int ts, int duration, int call) {
    text += R"({"type":"kernel","op":"ioctl","name":"NV_ESC","ts":)" + std::to_string(ts * 1000) +
            R"(,"duration_us":)" + std::to_string(duration) + R"(.000,"pid":)" +
            std::to_string(pid) + R"(,"tid":)" + std::to_string(tid) + R"(,"call":)" +
            std::to_string(call) + R"(,"control":"CTRL"})" + "\n";
    return *this;
  }
  Drawn& line(const std::string& json) {
    text += json + "\n";
    return *this;
  }
};

struct Analyzed {
  explicit Analyzed(const Drawn& trace, std::uint64_t duration, Timeline::Window window = {},
                    bool with_bars = false)
      : timeline(parser.names(), window, with_bars) {
    each_line(parser, trace.text, [&](const Line& line) { timeline.line(line); });
    TraceFacts facts;
    facts.last_ts = duration * 1000;
    timeline.finish(facts);
  }
  std::string page(unsigned width = 80) const {
    Page page({.width = width}, 160);
    add_timeline(page, timeline);
    return page.take();
  }

  LineParser parser;
  Timeline timeline;
};

constexpr auto KERNEL = static_cast<std::size_t>(Category::kernel);
constexpr auto SYNC = static_cast<std::size_t>(Category::sync);
constexpr auto UNFINISHED = static_cast<std::size_t>(Category::unfinished);

// More calls than are drawn one by one.
Drawn many() {
  Drawn trace;
  for (int i = 0; i < 100; i++) trace.call("kernel", i * 10, 10, R"(,"stream":"0x1")");
  return trace.call("sync", 1000, 800).call("memory", 1900, 20);
}

}  // namespace

TEST_CASE("Which type took most of each column") {
  Analyzed analyzed(many(), 2000);
  const auto& thread = analyzed.timeline.thread(0);
  auto columns = analyzed.timeline.columns(thread, 20);
  std::uint32_t launches = 0;
  for (std::size_t i = 0; i < 10; i++) {
    CHECK(columns[i].most() == Category::kernel);
    CHECK((columns[i].launches >= 9 &&
           columns[i].launches <= 11));  // one more or less, depending on where buckets begin
    launches += columns[i].launches;
  }
  CHECK(launches == 100);
  for (std::size_t i = 10; i < 18; i++) CHECK(columns[i].most() == Category::sync);
  CHECK(columns[18].total() == 0);
  CHECK(columns[19].most() == Category::memory);
  CHECK(columns[19].total() == 20'000);
  CHECK(thread.all.total() == 1'820'000);
  CHECK(thread.all.calls == 102);
  CHECK(thread.gap.begin == 1'800'000);
  CHECK(thread.gap.time == 100'000);
  CHECK(analyzed.timeline.pieces().empty());
  auto enqueued = analyzed.timeline.columns(analyzed.timeline.stream(0), 2);
  CHECK(enqueued == std::vector<std::uint64_t>{100, 0});
  std::string page = analyzed.page();
  CHECK_THAT(page, ContainsSubstring("KKKKKKKKKK") && ContainsSubstring("SSSSSSSSSS") &&
                       ContainsSubstring("m") && ContainsSubstring("91 %") &&
                       ContainsSubstring("thread 1: cu_sync to cu_memory"));
}

TEST_CASE("A window shows what lies in it, and what reaches into it in part") {
  Analyzed analyzed(many(), 2000, {995'000, 1'905'000});
  const auto& all = analyzed.timeline.thread(0).all;
  CHECK(all.calls == 3);
  CHECK(all.time[KERNEL] == 5'000);
  CHECK(all.time[SYNC] == 800'000);
  CHECK(all.total() == 810'000);
  REQUIRE(analyzed.timeline.pieces().size() == 3);
  CHECK(analyzed.timeline.pieces()[0].begin == 0);
  CHECK(analyzed.timeline.pieces()[0].end == 5'000);
  CHECK(analyzed.timeline.pieces()[0].duration == 10'000);
  CHECK(analyzed.timeline.to() == 1'905'000);
  CHECK(Analyzed(many(), 2000, {1'000'000, 9'000'000}).timeline.to() == 2'000'000);
  CHECK(Analyzed(many(), 2000, {1'800'000, 1'900'000}).timeline.threads() == 0);
  CHECK_THAT(Analyzed(many(), 2000, {1'800'000, 1'900'000}).page(), ContainsSubstring("No calls"));
}

TEST_CASE("A call made inside another is its part") {
  Drawn trace;
  trace.call("memory", 10, 5, R"(,"parent":2)").call("sync", 0, 100);
  Analyzed analyzed(trace, 100);
  CHECK(analyzed.timeline.thread(0).all.total() == 100'000);
  CHECK(analyzed.timeline.thread(0).all.calls == 2);
}

TEST_CASE("A call without a duration takes no time, one that never returned all that is left") {
  Drawn trace;
  trace.call("kernel", 10, -1).call("memory", 500, 500);
  trace.tid = 2;
  trace.call("sync", 600, -1, R"(,"unfinished":true)");
  Analyzed analyzed(trace, 1000);
  CHECK(analyzed.timeline.thread(0).all.total() == 500'000);
  CHECK(analyzed.timeline.columns(analyzed.timeline.thread(0), 10)[0].most() == Category::kernel);
  CHECK(analyzed.timeline.thread(1).all.time[UNFINISHED] == 400'000);
  CHECK_THAT(analyzed.page(), ContainsSubstring("unfinished") && ContainsSubstring(" ?\n"));
}

TEST_CASE("Few calls have a line each, with what they asked of the driver below") {
  Drawn trace;
  trace.call("sync", 0, 10);
  trace.ioctl(30, 10, 3).call("memory", 50, 10, R"(,"parent":3)").call("kernel", 20, 80);
  std::string page = Analyzed(trace, 100).page();
  auto at = [&](const std::string& what) {
    CAPTURE(page, what);
    REQUIRE(page.find(what) != std::string::npos);
    return page.find(what);
  };
  CHECK(at("\n  cu_sync ") < at("\n  cu_kernel "));
  CHECK(at("\n  cu_kernel ") < at("\n    NV_ESC CTRL "));
  CHECK(at("\n    NV_ESC CTRL ") < at("\n    cu_memory "));
  // 36 columns stand for 100 µs.
  CHECK_THAT(page, ContainsSubstring("████") && ContainsSubstring("80.0 µs\n"));
}

TEST_CASE("Calls that say they are inside of each other are drawn all the same") {
  Drawn trace;
  trace.call("sync", 0, 10, R"(,"parent":2)").call("memory", 0, 10, R"(,"parent":1)");
  trace.call("kernel", 0, 10, R"(,"parent":3)");
  std::string page = Analyzed(trace, 10).page();
  CHECK_THAT(page, ContainsSubstring("cu_sync") && ContainsSubstring("cu_memory") &&
                       ContainsSubstring("cu_kernel"));
}

TEST_CASE("A pid that is used again is another process") {
  Drawn trace;
  trace.line(R"({"type":"process","op":"start","ts":0,"pid":1,"comm":"one"})").call("sync", 0, 10);
  trace.line(R"({"type":"process","op":"exec","ts":0,"pid":1,"comm":"more"})").call("sync", 20, 10);
  trace.line(R"({"type":"process","op":"exit","ts":40000,"pid":1,"comm":"more"})");
  trace.line(R"({"type":"process","op":"fork","ts":50000,"pid":1,"comm":"two"})");
  trace.call("sync", 60, 10);
  Json json = timeline_json(Analyzed(trace, 100).timeline);
  REQUIRE(json["processes"].size() == 2);
  CHECK(json["processes"][0]["comm"] == "more");
  CHECK(json["processes"][0]["threads"][0]["calls"] == 2);
  CHECK(json["processes"][1]["comm"] == "two");
  CHECK(json["processes"][1]["threads"][0]["calls"] == 1);
}

TEST_CASE("Bars of a picture: all of a few, merged ones of many") {
  Drawn trace;
  trace.call("kernel", 0, 10, R"(,"kernel":"<a&b>")").call("sync", 20, 10);
  Analyzed few(trace, 100, {}, true);
  CHECK(few.timeline.thread(0).bars[TimelineBars::calls].size() == 2);
  CHECK(few.timeline.bars().merged_within() == 0);
  CHECK_THAT(timeline_svg(few.timeline, "t"), ContainsSubstring("cu_kernel &lt;a&amp;b&gt;"));

  constexpr int MANY = TimelineBars::MOST + 1'000;  // of each: from twice MOST on they are merged
  for (int i = 0; i < MANY; i++) {
    trace.call("kernel", 100 + 10 * i, 1).call("memory", 105 + 10 * i, 1);
  }
  trace.call("sync", 400'000, 10);
  Analyzed many(trace, 400'010, {}, true);
  const auto& bars = many.timeline.thread(0).bars[TimelineBars::calls];
  CHECK(bars.size() <= TimelineBars::MOST);
  CHECK(bars.size() > 100);
  std::uint64_t calls = 0, busy = 0;
  for (const auto& bar : bars) {
    calls += bar.count;
    busy += bar.busy;
  }
  CHECK(calls == 2 * MANY + 3);
  CHECK(busy == 1'000 * (2 * MANY + 30));
  CHECK(bars.back().category == Category::sync);
}

TEST_CASE("No trace is too long for its buckets") {
  Drawn trace;
  trace.call("kernel", 0, 10);
  trace.line(R"({"id":9,"type":"sync","name":"cuX","ts":9223372036853000000,)"
             R"("duration_us":1000.000,"pid":1,"tid":1})");
  Analyzed analyzed(trace, 1000, {}, true);
  CHECK(analyzed.timeline.thread(0).all.calls == 2);
  CHECK_FALSE(analyzed.page().empty());
  CHECK_FALSE(timeline_svg(analyzed.timeline, "t").empty());
}
