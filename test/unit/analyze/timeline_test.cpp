#include "analyze/timeline/timeline.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "analyze/timeline/timeline_view.hpp"

#include "support/drawn_timeline.hpp"
#include "support/graph_lines.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr auto KERNEL = static_cast<std::size_t>(Category::kernel);
constexpr auto SYNC = static_cast<std::size_t>(Category::sync);
constexpr auto UNFINISHED = static_cast<std::size_t>(Category::unfinished);

}  // namespace

TEST_CASE("Which type took most of each column") {
  Analyzed analyzed(many(), 2000);
  const auto& thread = analyzed.timeline.thread(0);
  auto columns = analyzed.columns(0, 20);
  for (std::size_t i = 0; i < 10; i++) {
    CHECK(columns[i].most() == Category::kernel);
    CHECK(columns[i].launches == 10);
  }
  for (std::size_t i = 10; i < 18; i++) CHECK(columns[i].most() == Category::sync);
  CHECK(columns[18].total() == 0);
  CHECK(columns[19].most() == Category::memory);
  CHECK(columns[19].total() == 20'000);
  CHECK(thread.all.total() == 1'820'000);
  CHECK(thread.all.calls == 102);
  CHECK(thread.gap.begin == 1'800'000);
  CHECK(thread.gap.time == 100'000);
  CHECK(analyzed.timeline.pieces().empty());
  TimeScale halves({{0, 2'000'000}}, 2, 0);
  CHECK(count_columns(analyzed.timeline.stream(0).bars, halves) ==
        std::vector<std::uint64_t>{100, 0});
  std::string page = analyzed.page();
  CHECK_THAT(page, ContainsSubstring("KKKKKKKKKK") && ContainsSubstring("░░░░░░░░░░") &&
                       ContainsSubstring("m") && ContainsSubstring("91 %") &&
                       ContainsSubstring("thread 1: cu_sync to cu_memory"));
}

TEST_CASE("A window shows what lies in it, and what reaches into it in part") {
  Analyzed analyzed(many(), 2000, Timeline::Window{995'000, 1'905'000});
  const auto& all = analyzed.timeline.thread(0).all;
  CHECK(all.calls == 3);
  CHECK(all.time[KERNEL] == 5'000);
  CHECK(all.time[SYNC] == 800'000);
  CHECK(all.total() == 810'000);
  REQUIRE(analyzed.timeline.pieces().size() == 3);
  CHECK(analyzed.timeline.pieces()[0].begin == 995'000);
  CHECK(analyzed.timeline.pieces()[0].end == 1'000'000);
  CHECK(analyzed.timeline.pieces()[0].duration == 10'000);
  CHECK(analyzed.timeline.to() == 1'905'000);
  CHECK(Analyzed(many(), 2000, Timeline::Window{1'000'000, 9'000'000}).timeline.to() == 2'000'000);
  CHECK(Analyzed(many(), 2000, Timeline::Window{1'800'000, 1'900'000}).timeline.threads() == 0);
  CHECK_THAT(Analyzed(many(), 2000, Timeline::Window{1'800'000, 1'900'000}).page(),
             ContainsSubstring("No calls"));
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
  CHECK(analyzed.columns(0, 10)[0].most() == Category::kernel);
  CHECK(analyzed.timeline.thread(1).all.time[UNFINISHED] == 400'000);
  CHECK_THAT(analyzed.page(), ContainsSubstring("unfinished") && ContainsSubstring(" ?\n"));
}

TEST_CASE("Few calls have a line each, with their requests to the driver below") {
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
  // 36 columns are 100 µs.
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

TEST_CASE("A call that did not return was over when its thread made another") {
  Drawn trace;
  trace.call("memory", 300, 100).call("sync", 100, -1, R"(,"unfinished":true)");
  Analyzed analyzed(trace, 1000);
  CHECK(analyzed.timeline.thread(0).all.time[UNFINISHED] == 200'000);
  CHECK(analyzed.timeline.thread(0).all.total() == 300'000);
}

TEST_CASE("Waiting is drawn lighter than work") {
  Drawn trace = many();
  trace.line(R"({"id":999,"type":"transfer","op":"DtoH","name":"cuMemcpyDtoH","ts":1950000,)"
             R"("duration_us":50.000,"pid":1,"tid":1})");
  Analyzed analyzed(trace, 2000);
  CHECK(analyzed.timeline.thread(0).all.time[static_cast<std::size_t>(Category::waiting_copy)] ==
        50'000);
  Page page({.color = true, .width = 80}, 160);
  add_timeline(page, analyzed.timeline);
  std::string text = page.take();
  CHECK_THAT(text, ContainsSubstring("\033[0;7;32mKKK") && ContainsSubstring("\033[0;31m░░░") &&
                       ContainsSubstring("\033[0;36m-▒"));
  CHECK(look_of(Category::sync).waits);
  CHECK_THAT(analyzed.svg(), ContainsSubstring(std::string(look_of(Category::sync).svg)) &&
                                 ContainsSubstring("waits for the GPU"));
}

TEST_CASE("Long times without a call are folded, as long as they are long for what is left") {
  using Spans = std::vector<TimeSpan>;
  CHECK(folded({0, 1000}, {{100, 900}}) == Spans{{0, 100}, {900, 1000}});
  CHECK(folded({0, 1000}, {{100, 150}}) == Spans{{0, 1000}});
  // The second is long only once the first is gone.
  CHECK(folded({0, 1000}, {{100, 120}, {200, 900}}) == Spans{{0, 100}, {120, 200}, {900, 1000}});
  // Outside of what is shown, or beyond its end.
  CHECK(folded({500, 1000}, {{100, 400}, {900, 1400}}) == Spans{{500, 1000}});
  Spans blanks;
  for (std::uint64_t i = 0; i < 100; i++) blanks.push_back({i * 1000, i * 1000 + 900 + i});
  CHECK(folded({0, 100'000}, blanks) == Spans{{0, 100'000}});  // each is a hundredth
  blanks = {};
  for (std::uint64_t i = 1; i < 18; i++) blanks.push_back({i * 1000, i * 1000 + 999});
  CHECK(folded({0, 18'000}, blanks).size() == 9);
}

TEST_CASE("Without a window it is drawn from the first call to the last, folded") {
  Drawn trace;
  for (int i = 0; i < 50; i++) trace.call("kernel", 5000 + i * 10, 10);
  for (int i = 0; i < 50; i++) trace.call("memory", 90'000 + i * 10, 10);
  Analyzed analyzed(trace, 100'000, std::nullopt);
  TimelineView view = view_of(analyzed.timeline);
  CHECK(view.shown == std::vector<TimeSpan>{{5'000'000, 5'500'000}, {90'000'000, 90'500'000}});
  CHECK(view.whole.empty());
  std::string page = analyzed.page();
  CHECK_THAT(page, ContainsSubstring("KKKKK╱╱MMMMM") && ContainsSubstring("84.5 ms folded") &&
                       ContainsSubstring("Skipped (no CUDA calls): 5.00 ms before the first call, "
                                         "84.5 ms at") &&
                       ContainsSubstring("--from 0 shows all, to scale."));
  CHECK_THAT(analyzed.svg(), ContainsSubstring("84.5 ms folded"));
  // A window that was requested is drawn as it is.
  Analyzed exact(trace, 100'000);
  CHECK(view_of(exact.timeline).shown == std::vector<TimeSpan>{{0, 100'000'000}});
  CHECK(exact.page().find("╱") == std::string::npos);
  CHECK(exact.page().find("--from") == std::string::npos);
  // Other threads' calls are no blank.
  trace.tid = 2;
  trace.call("sync", 5500, 84'500);
  CHECK(view_of(Analyzed(trace, 100'000, std::nullopt).timeline).shown.size() == 1);
}

TEST_CASE("A narrow picture has fewer folds than a wide one") {
  Drawn trace;
  for (int i = 0; i < 9; i++) trace.call("kernel", i * 100'000, 10);
  Analyzed analyzed(trace, 1'000'000, std::nullopt);
  CHECK(view_of(analyzed.timeline).shown.size() == 1 + MAX_FOLDS);
  CHECK(view_of(analyzed.timeline, 15).shown.size() == 2);
  CHECK(view_of(analyzed.timeline, 7).shown.size() == 1);
  for (unsigned width : {40, 60, 80}) {
    INFO(width);
    std::string page = analyzed.page(width);
    CHECK_THAT(page, ContainsSubstring("╱╱"));
    for (std::size_t at = 0, end; at < page.size(); at = end + 1) {
      end = page.find('\n', at);
      CHECK(width_of(page.substr(at, end - at)) <= width);
    }
  }
}

TEST_CASE("Inference that is a small part of a run is drawn by itself, below the whole") {
  Drawn trace;
  trace.call("init", 0, 10'000).call("module", 10'000, 10'000);
  auto token = [&](int ts) {
    for (int i = 0; i < 6; i++)
      trace.call("kernel", ts + i * 10, 5,
                 R"(,"stream":"0x1","async":true,"kernel":"k)" + std::to_string(i) + "\"");
    trace.call("sync", ts + 60, 20);
  };
  for (int i = 0; i < 20; i++) token(20'000 + i * 100);
  Analyzed analyzed(trace, 30'000, std::nullopt);
  REQUIRE(analyzed.timeline.execution().iterations().each.size() == 20);
  TimelineView view = view_of(analyzed.timeline);
  CHECK(view.whole == std::vector<TimeSpan>{{0, 21'980'000}});
  CHECK(view.shown == std::vector<TimeSpan>{{20'000'000, 21'980'000}});
  std::string page = analyzed.page(100);
  CHECK_THAT(page, ContainsSubstring("  phases ") && ContainsSubstring("│initialisation") &&
                       ContainsSubstring("inference, from 0.020000 s to 0.021980 s") &&
                       ContainsSubstring("  iterations, 20         │1 │2  │3"));
  std::string svg = analyzed.svg();
  CHECK_THAT(svg, ContainsSubstring("iteration 7: 100 µs\n6 launches, 0.020600 s to 0.020700 s") &&
                      ContainsSubstring("inference\n1.98 ms, 0.020000 s to 0.021980 s"));
  Json json = timeline_json(analyzed.timeline);
  CHECK(json["from_us"] == 0);
  const Json& execution = json["processes"][0]["execution"];
  CHECK(execution["tid"] == 1);
  std::uint64_t begun = 0;
  for (const Json& column : execution["iterations"]) begun += column.get<std::uint64_t>();
  CHECK(begun == 20);
}

TEST_CASE("Launches are named by their kernel's short name") {
  Drawn trace;
  trace.call("kernel", 0, 50, R"~(,"kernel":"void at::f<int>(int*)")~");
  trace.call("kernel", 50, 50, R"~(,"kernel":"void at::f<float>(float*)")~");
  Analyzed analyzed(trace, 100);
  CHECK_THAT(analyzed.page(), ContainsSubstring("  f<int> ") && ContainsSubstring("  f<float> "));
  CHECK_THAT(analyzed.svg(), ContainsSubstring("<title>f&lt;int&gt;\ncu_kernel, 50.0 µs at "
                                               "0.000000 s</title>"));
}

TEST_CASE("Launches of graphs say which graph, and what is captured is no launch") {
  Drawn trace;
  trace.text = content_line(3, 21, 20, kernel_nodes("k", "20"));
  trace.call("graph", 10, 5, of_graph(3, 21, 20)).call("graph", 20, 5);
  trace.call("kernel", 30, 5, R"(,"kernel":"k","stream":"0x7","captured":true)");
  Analyzed analyzed(trace, 100);
  const auto& thread = analyzed.timeline.thread(0);
  CHECK(thread.all.launches == 2);
  CHECK(thread.all.time[static_cast<std::size_t>(Category::captured)] == 5000);
  CHECK(thread.all.time[KERNEL] == 0);
  CHECK(analyzed.timeline.streams() == 0);
  std::string page = analyzed.page(120);
  CHECK_THAT(page, ContainsSubstring("graph 3, 20 kernels"));
  CHECK_THAT(page, ContainsSubstring("cu_graph "));
  CHECK_THAT(analyzed.svg(), ContainsSubstring(">captured<"));
  CHECK_THAT(Analyzed(many(), 2000).svg(), !ContainsSubstring(">captured<"));
  CHECK_THAT(analyzed.svg(), ContainsSubstring("graph 3, 20 kernels\ncu_graph, 5.00 µs at"));
}

TEST_CASE("Each GPU that was sampled has a row of its activity, in the terminal and in a picture") {
  Drawn trace;
  for (int i = 0; i < 100; i++) trace.call("kernel", 10'000 * i, 100);  // more than few
  CHECK_THAT(Analyzed(trace, 1'000'000).page(), !ContainsSubstring("GPU"));
  for (int i = 1; i <= 10; i++)
    for (int device = 0; device < 20; device++)
      trace.line(R"({"type":"gpu","op":"sample","ts":)" + std::to_string(i) +
                 R"(00000000,"window_ms":100.0,"sm_active":)" + (i > 5 ? "80" : "0") +
                 R"(,"gpu":)" + std::to_string(device) + "}");
  Analyzed analyzed(trace, 1'000'000);
  std::string page = analyzed.page();
  CHECK_THAT(page, ContainsSubstring("GPUs, from NVML (all processes)\n"));
  CHECK_THAT(page, ContainsSubstring("GPU 15, SM activity"));
  CHECK_THAT(page, !ContainsSubstring("GPU 16"));
  std::string svg = analyzed.svg();
  CHECK_THAT(svg, ContainsSubstring("GPU 15, SM activity"));
  CHECK_THAT(svg, ContainsSubstring("80 %"));
  CHECK(svg.size() < 1'000'000);
  // Where they did nothing there is no row.
  Analyzed idle(trace, 1'000'000, Timeline::Window{.from = 0, .to = 400'000'000});
  CHECK_THAT(idle.page(), !ContainsSubstring("GPU"));
}
