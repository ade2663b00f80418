// What the timeline shows of GPUs, where a trace has what they did.
#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "analyze/timeline/timeline.hpp"
#include "analyze/timeline/timeline_tooltips.hpp"
#include "analyze/timeline/timeline_view.hpp"

#include "support/analyzing.hpp"
#include "support/fewer.hpp"
#include "support/gpu_operation_lines.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

// A launch, in µs.
std::string launch_at(int id, int ts, const std::string& kernel = "f") {
  return fmt::format(
             R"({{"id":{},"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":{}000,)"
             R"("duration_us":2.000,"pid":1,"tid":5,"ret":0,"stream":"0x7f10","async":true,)"
             R"("kernel":"{}"}})",
             id, ts, kernel) +
         "\n";
}
// What a GPU did, in µs; `rest`: "call":1,…
std::string work(const std::string& op, std::uint64_t ts, int took, const std::string& rest,
                 int queue = 3, int pid = 1) {
  return fmt::format(R"({{"type":"gpu","op":"{}","ts":{}000,"duration_us":{}.000,"pid":{},)"
                     R"("stream":"0x7f10","queue":{},"device":0{}}})",
                     op, ts, took, pid, queue, rest.empty() ? "" : "," + rest) +
         "\n";
}
std::string kernel(int call) {
  return fmt::format(R"("call":{},"kernel":"f","grid":[4,2,1],"block":[32,1,1])", call);
}

struct AnalyzedOperations {
  explicit AnalyzedOperations(const std::string& text, std::uint64_t duration,
                              std::optional<Timeline::Window> window = Timeline::Window{})
      : timeline(parser.names(), window) {
    auto seen = each_line(parser, text, [&](const Line& line) { timeline.line(line); });
    TraceFacts facts;
    facts.last_ts = duration * 1000;
    timeline.finish(facts);
  }
  std::string page(unsigned width = 100) const {
    Page page({.width = width}, 160);
    add_timeline(page, timeline);
    return page.take();
  }
  std::string svg() const { return timeline_svg(timeline, "t"); }

  LineParser parser;
  Timeline timeline;
};

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    found++;
  return found;
}

// Launches of 10 µs each, with a kernel of 8 µs, 50 µs later.
std::string many_operations(int calls = 100) {
  std::string text = MEASURED;
  for (int i = 1; i <= calls; i++) text += launch_at(i, i * 10);
  for (int i = 1; i <= calls; i++)
    text += work("kernel", static_cast<std::uint64_t>(i) * 10 + 50, 8, kernel(i));
  return text;
}

}  // namespace

TEST_CASE("A GPU's row shows what it did, when it did it") {
  AnalyzedOperations analyzed(many_operations(), 1100);
  REQUIRE(analyzed.timeline.gpu_queues() == 1);
  const Timeline::Queue& queue = analyzed.timeline.gpu_queue(0);
  CHECK(queue.operations == 100);
  CHECK(queue.time == 800'000);
  TimeScale scale({{0, 1'100'000}}, 11, 0);
  auto columns = busy_columns(queue, scale);
  CHECK(columns[0].total() == 32'000);
  CHECK(columns[5].total() == 80'000);
  CHECK(columns[5].most() == Category::kernel);
  std::string page = analyzed.page();
  CHECK_THAT(page, ContainsSubstring("  GPU 0 stream 3  73 %") && ContainsSubstring("    0x7f10 "));
  CHECK_THAT(page, ContainsSubstring("as measured"));
  // The row of the stream would say less, so it is not there; nor does anything mention it.
  CHECK_THAT(page, !ContainsSubstring("stream 0x7f10") && !ContainsSubstring("not when that ran") &&
                       !ContainsSubstring("not shown"));
  nlohmann::ordered_json json = timeline_json(analyzed.timeline);
  const auto& listed = json["processes"][0]["queues"][0];
  CHECK(listed["device"] == 0);
  CHECK(listed["queue"] == 3);
  CHECK(listed["stream"] == "0x7f10");
  CHECK(listed["operations"] == 100);
  CHECK(listed["busy_us"] == 800);
  CHECK(listed["columns"]["busy_us"]["kernel"].size() == 256);
  CHECK(json["processes"][0]["streams"].size() == 1);
}

TEST_CASE("Times between the windows in which GPU times were recorded are no idle times") {
  auto recorded = [](int from, int to) {
    return fmt::format(R"({{"type":"gpu","op":"window","ts":{}000,"duration_us":{}.000,"pid":1}})"
                       "\n",
                       from, to - from);
  };
  std::string text = MEASURED;
  for (int i = 1; i <= 100; i++) text += launch_at(i, i * 10);
  for (int i = 30; i < 40; i++)
    text += work("kernel", static_cast<std::uint64_t>(i) * 10, 8, kernel(i));
  text += recorded(300, 400) + recorded(700, 800) + recorded(900, 900);
  AnalyzedOperations analyzed(text, 1100);
  std::string page = analyzed.page();
  CHECK_THAT(page, ContainsSubstring("  GPU 0 stream 3  40 %"));
  CHECK_THAT(page, ContainsSubstring("  GPU times recorded") && ContainsSubstring("  ───────  ") &&
                       ContainsSubstring("it is no idle time, and % is of the windows"));
  CHECK(count(analyzed.svg(), "GPU times were recorded for 100 µs") == 2);
  nlohmann::ordered_json json = timeline_json(analyzed.timeline);
  CHECK(json["processes"][0]["gpu_windows_us"] ==
        nlohmann::ordered_json::parse("[[300.0,400.0],[700.0,800.0]]"));
  // A part that lies between them, into which a kernel reaches.
  AnalyzedOperations between(text, 1100, Timeline::Window{395'000, 600'000});
  CHECK(timeline_json(between.timeline)["processes"][0]["gpu_windows_us"].size() == 1);
  CHECK_THAT(AnalyzedOperations(many_operations(), 1100).page(), !ContainsSubstring("windows"));
}

TEST_CASE("A window has what a GPU did in it, in part what reaches into it") {
  AnalyzedOperations analyzed(many_operations(), 1100, Timeline::Window{104'000, 136'000});
  const Timeline::Queue& queue = analyzed.timeline.gpu_queue(0);
  CHECK(queue.operations == 4);
  CHECK(queue.time == 4'000 + 8'000 + 8'000 + 6'000);
  // Few calls and few operations: each has a line.
  std::string page = analyzed.page();
  CHECK_THAT(page, ContainsSubstring("process 1, GPU 0 stream 3 (0x7f10)\n"));
  CHECK(count(page, "8.00 µs") == 4);
  AnalyzedOperations none(many_operations(), 1100, Timeline::Window{1'090'000, 1'100'000});
  CHECK_THAT(none.page(), ContainsSubstring("No calls"));
}

TEST_CASE("In a picture the mouse shows each kernel, and arrows lead there while they are few") {
  AnalyzedOperations analyzed(many_operations(60), 700);
  std::string svg = analyzed.svg();
  CHECK_THAT(svg, ContainsSubstring("GPU 0 stream 3 (0x7f10)"));
  CHECK_THAT(svg, ContainsSubstring("f\n8.00 µs on the GPU, began at 0.000060 s\nqueued for "
                                    "50.0 µs\ngrid 4×2×1, block 32×1×1\ncall 1<"));
  CHECK(count(svg, "<polygon") == 60);
  CHECK_THAT(svg, !ContainsSubstring("enqueued"));
  CHECK(count(AnalyzedOperations(many_operations(61), 700).svg(), "<polygon") == 0);
}

TEST_CASE("An arrow leads to what a graph did first") {
  std::string text = MEASURED;
  for (int i = 1; i <= 70; i++) text += launch_at(i, i * 10);
  for (int node = 9; node >= 0; node--)
    text += work("kernel", 800 + static_cast<std::uint64_t>(node) * 10, 5,
                 kernel(1) + R"(,"node":)" + std::to_string(node));
  AnalyzedOperations analyzed(text, 1000);
  CHECK(count(analyzed.svg(), "<polygon") == 1);
  CHECK_THAT(analyzed.svg(), ContainsSubstring("call 1, node 9 of its graph"));
  std::size_t first = 0;
  for (const QueuedOperation& one : analyzed.timeline.gpu_operations())
    first += one.is_first ? one.line.node + 1 : 0;
  CHECK(first == 1);
}

TEST_CASE("What a GPU does while no call runs is not folded away") {
  std::string text = MEASURED + launch_at(1, 10);
  for (int i = 2; i < 80; i++) text += launch_at(i, 10 + i);
  text += launch_at(80, 100'000) + work("kernel", 20, 60'000, kernel(1));
  AnalyzedOperations analyzed(text, 100'010, std::nullopt);
  TimelineView view = view_of(analyzed.timeline);
  CHECK(view.shown == std::vector<TimeSpan>{{10'000, 60'020'000}, {100'000'000, 100'002'000}});
  CHECK_THAT(note_of_view(analyzed.timeline, view, {}),
             ContainsSubstring("Skipped (no CUDA calls, no GPU work): 40.0 ms at"));
}

TEST_CASE("Work that is not joined, or of a process without calls, has rows as well") {
  AnalyzedOperations analyzed(
      MEASURED +
          work("copy", 10, 5, R"("size":4096,"direction":"HtoD","unjoined":"no_call")", 3, 9) +
          work("set", 30, 5, R"("size":64,"call":77)", 3, 9),
      100);
  std::string page = analyzed.page();
  CHECK_THAT(page, ContainsSubstring("process 9, GPU 0 stream 3 (0x7f10)") &&
                       ContainsSubstring("copy HtoD 4.00 KiB") && ContainsSubstring("fill 64 B"));
  CHECK_THAT(analyzed.svg(),
             ContainsSubstring("no call known: no_call") && !ContainsSubstring("queued for"));
  // The process is the same when its first call comes.
  AnalyzedOperations later(MEASURED + work("set", 30, 5, R"("size":64)") + launch_at(1, 50), 100);
  REQUIRE(later.timeline.processes().size() == 1);
  CHECK(later.timeline.processes()[0].number == 1);
  CHECK(later.timeline.processes()[0].threads.size() == 1);
  CHECK(later.timeline.processes()[0].queues.size() == 1);
}

TEST_CASE("Absurd times of GPUs neither crash nor move anything else") {
  std::string text = MEASURED + many_operations(70).substr(MEASURED.size());
  text += R"({"type":"gpu","op":"kernel","ts":9223372036854775807,"duration_us":0.000,"pid":1})"
          "\n";
  text += R"({"type":"gpu","op":"kernel","ts":200000,"duration_us":9000000000000000.000,"pid":1})"
          "\n";
  text += R"({"type":"gpu","op":"kernel","ts":300000,"pid":1,"kernel":"g"})"
          "\n";
  text += R"({"type":"gpu","op":"kernel"})"
          "\n";
  for (int i = 0; i < 3; i++)  // one in the other
    text += work("kernel", 400 + static_cast<std::uint64_t>(i), 100 - 10 * i, R"("kernel":"h")");
  AnalyzedOperations analyzed(text, 1000);
  CHECK(analyzed.timeline.to() == 1'000'000);
  CHECK_THAT(analyzed.page(),
             ContainsSubstring("GPU 0 stream 3") && ContainsSubstring("GPU not known"));
  CHECK(analyzed.svg().size() < 1'000'000);
  CHECK_THAT(timeline_json(analyzed.timeline).dump(), ContainsSubstring("\"operations\":73"));
}

TEST_CASE("More streams than have rows are reported") {
  std::string text = many_operations(70);
  for (int queue = 10; queue < 100; queue++) text += work("kernel", 100, 5, "", queue);
  AnalyzedOperations analyzed(text, 1000);
  CHECK(analyzed.timeline.gpu_queues() == 64);
  CHECK(analyzed.timeline.left_out_of_queues() == 27);
  CHECK_THAT(analyzed.page(), ContainsSubstring("27 pieces of GPUs' work in more streams") &&
                                  ContainsSubstring("48 streams of GPUs"));
  CHECK(timeline_json(analyzed.timeline)["operations_of_more_queues"] == 27);
}

TEST_CASE("A quarter of a million kernels make a small picture that leaves none out") {
  constexpr int MANY = 250'000 / FEWER;
  std::string text = MEASURED + launch_at(1, 1);
  for (int i = 0; i < MANY; i++)
    text += work("kernel", 10 + static_cast<std::uint64_t>(i) * 10, 5, R"("kernel":"f")", i % 3);
  AnalyzedOperations analyzed(text, 10 + MANY * 10);
  std::string svg = analyzed.svg();
  CHECK(svg.size() < 1'000'000);
  CHECK(analyzed.timeline.gpu_operations().empty());
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < 3; i++)
    for (const Bar& bar : analyzed.timeline.gpu_queue(i).bars) all += bar.total().count;
  CHECK(all == MANY);
  CHECK_THAT(svg, ContainsSubstring("kernels, copies and fills, "));
  // Looked at closely, all is shown of each.
  AnalyzedOperations closer(text, 10 + MANY * 10, Timeline::Window{1'000'000, 1'050'000});
  CHECK(closer.timeline.gpu_operations().size() == 5);
}

TEST_CASE("What overlaps in a queue counts once in the time that it was busy") {
  AnalyzedOperations operations(
      launch_at(1, 10) + work("kernel", 100, 40, kernel(1)) + work("kernel", 120, 40, kernel(1)) +
          work("kernel", 110, 5, kernel(1)) + work("kernel", 190, 20, kernel(1)),
      200);
  Json queue = timeline_json(operations.timeline)["processes"][0]["queues"][0];
  CHECK(queue["busy_us"] == 70.0);  // 60, and 10 until the end
  double columns = 0;
  for (const Json& time : queue["columns"]["busy_us"])
    for (const Json& one : time) columns += one.get<double>();
  CHECK(columns > 68);
  CHECK(columns < 72);
}

TEST_CASE("What overlaps counts once in all that is shown of a queue, however many there are") {
  // Two kernels of 4 µs at once, each 10 µs.
  int pairs = 3'000;
  SECTION("each kernel is a bar") {}
  SECTION("many kernels are one bar") { pairs = 70'000; }
  std::string text = MEASURED + launch_at(1, 1);
  for (int i = 0; i < pairs; i++)
    for (int both = 0; both < 2; both++)
      text += work("kernel", 10 + static_cast<std::uint64_t>(i) * 10, 4, R"("kernel":"f")");
  AnalyzedOperations operations(text, 10 + static_cast<std::uint64_t>(pairs) * 10);
  Json queue = timeline_json(operations.timeline)["processes"][0]["queues"][0];
  double busy = 4.0 * pairs, columns = 0;
  CHECK(queue["busy_us"] == busy);
  for (const Json& time : queue["columns"]["busy_us"])
    for (const Json& one : time) columns += one.get<double>();
  CHECK(columns > 0.999 * busy);
  CHECK(columns < 1.001 * busy);
  CHECK_THAT(operations.page(), ContainsSubstring("GPU 0 stream 3  40 %"));
}
