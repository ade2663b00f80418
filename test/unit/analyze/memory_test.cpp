#include "analyze/memory/memory.hpp"

#include <fmt/format.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "support/analyzing.hpp"
#include "support/trace_text.hpp"
#include "util/page/svg.hpp"
#include "util/text/markup.hpp"
#include "util/text/printable.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

struct AnalyzedMemory {
  explicit AnalyzedMemory(const Trace& trace) : memory(parser.names()) {
    each_line(parser, trace.text, [&](const Line& line) { memory.line(line); });
    TraceFacts facts;
    facts.last_ts = trace.now * 1000;
    memory.finish(facts);
  }
  Json json() const { return memory_json(memory); }
  std::string page() const {
    Page page({.width = 80});
    add_memory(page, memory, 1);
    return page.take();
  }

  LineParser parser;
  Memory memory;
};

Trace& start(Trace& trace, int pid, const std::string& comm) {
  trace.pid = pid;
  return trace.line(R"({"type":"process","op":"start","ts":0,"pid":)" + std::to_string(pid) +
                    R"(,"comm":")" + comm + "\"}");
}

}  // namespace

TEST_CASE("Memory of each process and kind, and what was left at the end") {
  Trace trace;
  start(trace, 1, "one").alloc(100, "0xa0").alloc(50, "0xb0", "managed").free("0xa0");
  trace.alloc(30, "0xc0", "host");
  start(trace, 2, "two").alloc(70, "0xa0").process("exit");
  trace.now = 1000;
  AnalyzedMemory analyzed(trace);
  Json json = analyzed.json();
  REQUIRE(json["processes"].size() == 2);
  const Json& one = json["processes"][0];
  CHECK(one["pid"] == 1);
  CHECK(one["comm"] == "one");
  CHECK(one["kinds"]["device"] == Json{{"allocations", 1},
                                       {"allocated", 100},
                                       {"frees", 1},
                                       {"freed", 100},
                                       {"replaced", 0},
                                       {"ended_with_context", 0},
                                       {"ended_with_process", 0},
                                       {"peak", 100},
                                       {"held", 0}});
  CHECK(one["kinds"]["managed"]["held"] == 50);
  CHECK(one["kinds"]["host"]["held"] == 30);
  CHECK(one["peak"]["gpu"]["bytes"] == 150);
  CHECK(one["peak"]["gpu"]["ts"] == 3000);
  CHECK(one["peak"]["host"]["bytes"] == 30);
  const Json& two = json["processes"][1];
  CHECK(two["kinds"]["device"]["ended_with_process"] == 70);
  CHECK(two["kinds"]["device"]["held"] == 0);
  CHECK(json["all"]["peak"]["gpu"]["bytes"] == 150);
  CHECK(json["all"]["peak"]["gpu"]["blocks"] == 2);
  CHECK(json["all"]["kinds"]["device"]["peak"] == 100);
  CHECK_THAT(analyzed.page(), ContainsSubstring("2 two device"));
}

TEST_CASE("Processes that are too many to be kept apart are one, and free what they held") {
  Trace trace;
  constexpr int PROCESSES = 300, APART = 256;
  for (int pid = 1; pid <= PROCESSES; pid++) start(trace, pid, "p").alloc(100, "0x10");
  for (int pid = 1; pid <= PROCESSES; pid += 2) {
    trace.pid = pid;
    trace.free("0x10");
  }
  AnalyzedMemory analyzed(trace);
  const auto& processes = analyzed.memory.holders();
  REQUIRE(processes.size() == APART + 1);
  std::uint64_t held = 0;
  for (const auto& holder : processes) {
    held += holder.held.kinds[0];
    if (!holder.pid) CHECK(holder.held.kinds[0] == (PROCESSES - APART) / 2 * 100);
  }
  CHECK(held == PROCESSES / 2 * 100);
}

TEST_CASE("However many files and functions asked for the peak, each has its own") {
  constexpr int FILES = 300;
  Trace trace;
  for (int i = 0; i < FILES; i++)
    trace.line(
        fmt::format(R"({{"id":{0},"type":"memory","op":"alloc","name":"cuMemAlloc{0}","ts":{0}000,)"
                    R"("duration_us":1.0,"pid":1,"tid":1,"ret":0,"holder":"lib{0}.so","size":{0},)"
                    R"("ptr":"0x{0:x}000","kind":"device"}})",
                    i + 1));
  AnalyzedMemory analyzed(trace);
  Json json = analyzed.json();
  REQUIRE(json["asked_by"]["gpu"].size() == FILES);
  for (const Json& one : json["asked_by"]["gpu"])
    CHECK(fmt::format("lib{}.so", one["at_peak"].get<int>()) == one["holder"]);
  const Json& groups = json["all"]["peak"]["gpu"]["groups"];
  REQUIRE(groups.size() == FILES);
  for (const Json& group : groups)
    CHECK(fmt::format("cuMemAlloc{}", group["bytes"].get<int>()) == group["function"]);
}

TEST_CASE("What held the peak, though it was freed later") {
  Trace trace;
  trace.alloc(1000, "0xa0").free("0xa0");               // not at the peak
  trace.alloc(4000, "0xb0").alloc(5000, "0xc0");        // the peak: 9000
  trace.free("0xb0").alloc(3999, "0xd0").free("0xc0");  // just below it
  AnalyzedMemory analyzed(trace);
  Json peak = analyzed.json()["processes"][0]["peak"]["gpu"];
  CHECK(peak["bytes"] == 9000);
  CHECK(peak["blocks"] == 2);
  REQUIRE(peak["groups"].size() == 2);
  CHECK(peak["groups"][0] ==
        Json{{"function", "cuMemAlloc"}, {"sizes", "4 to 8 KiB"}, {"bytes", 5000}, {"blocks", 1}});
  CHECK(peak["groups"][1]["sizes"] == "2 to 4 KiB");
  REQUIRE(peak["largest"].size() == 2);
  CHECK(peak["largest"][0]["ptr"] == "0xc0");
  CHECK(peak["largest"][0]["call"] == 4);
  CHECK(peak["largest"][0]["age_us"] == 0);
  CHECK(peak["largest"][1]["ptr"] == "0xb0");
  CHECK(peak["largest"][1]["age_us"] == 2);
}

TEST_CASE("A higher peak forgets what held the one before") {
  Trace trace;
  trace.alloc(100, "0xa0").free("0xa0").alloc(100, "0xa0").alloc(1, "0xb0").free("0xa0");
  Json peak = AnalyzedMemory(trace).json()["processes"][0]["peak"]["gpu"];
  CHECK(peak["bytes"] == 101);
  CHECK(peak["blocks"] == 2);
  CHECK(peak["groups"][0]["bytes"] == 100);
  CHECK(peak["groups"][1]["bytes"] == 1);
}

TEST_CASE("Many blocks at the peak: the largest are listed, all are counted") {
  Trace trace;
  for (int i = 1; i <= 100; i++) trace.alloc(i, "0x" + std::to_string(1000 + i));
  for (int i = 1; i <= 50; i++) trace.free("0x" + std::to_string(1000 + 2 * i));
  Json peak = AnalyzedMemory(trace).json()["processes"][0]["peak"]["gpu"];
  CHECK(peak["bytes"] == 5050);
  CHECK(peak["blocks"] == 100);
  REQUIRE(peak["largest"].size() == MemoryPeak::LARGEST);
  for (std::size_t i = 0; i < MemoryPeak::LARGEST; i++)
    CHECK(peak["largest"][i]["size"] == 100 - i);
}

TEST_CASE("What was never freed, and how it ended") {
  Trace trace;
  trace.context("cuCtxCreate", R"("device":0,"args":{"pctx":"0x77"})");
  trace.alloc(10, "0xa0").context("cuCtxDestroy", R"("args":{"ctx":"0x77"})");
  trace.alloc(20, "0xb0").alloc(30, "0xb0");  // the free between them was not seen
  trace.pid = 2;
  trace.alloc(40, "0xc0").process("exit");
  AnalyzedMemory analyzed(trace);
  Json never = analyzed.json()["never_freed"];
  CHECK(never["blocks"] == 3);
  CHECK(never["bytes"] == 80);
  REQUIRE(never["largest"].size() == 3);
  CHECK(never["largest"][0]["size"] == 40);
  CHECK(never["largest"][0]["ended_with"] == "process");
  CHECK(never["largest"][0]["age_us"] == 1);
  CHECK(never["largest"][1]["ended_with"] == "still held");
  CHECK(never["largest"][1]["age_us"] == 3);
  CHECK(never["largest"][2]["ended_with"] == "context");
  CHECK_THAT(analyzed.page(), ContainsSubstring("0xc0 cuMemAlloc"));
  CHECK_THAT(analyzed.page(), ContainsSubstring("2 more") && ContainsSubstring("40 B"));
}

TEST_CASE("Frees of what was allocated before the trace") {
  Trace trace;
  trace.free("0xa0").free("0x0");
  AnalyzedMemory analyzed(trace);
  Json frees = analyzed.json()["frees_without_allocation"];
  CHECK(frees["count"] == 1);
  CHECK(frees["first"][0]["address"] == "0xa0");
  CHECK_THAT(analyzed.page(), ContainsSubstring("frees without an allocation"));
}

TEST_CASE("Churn: sizes that are freed and allocated again") {
  Trace trace;
  for (int i = 0; i < 3; i++) trace.alloc(64, "0xa0").free("0xa0");  // 2 µs each, and soon again
  trace.now += 2000;
  trace.alloc(64, "0xa0").alloc(65, "0xb0");
  Json churn = AnalyzedMemory(trace).json()["churn"];
  REQUIRE(churn.size() == 1);
  CHECK(churn[0]["size"] == 64);
  CHECK(churn[0]["allocations"] == 4);
  CHECK(churn[0]["frees"] == 3);
  CHECK(churn[0]["again_soon"] == 2);
  CHECK(churn[0]["lifetime_p50_us"] == 2);
}

TEST_CASE("Without returns no memory is known, and the page says so") {
  Trace trace;
  trace.line(R"({"id":1,"type":"memory","op":"alloc","name":"cuMemAlloc","ts":1,"pid":1,"tid":1,)"
             R"("size":9,"kind":"device"})");
  std::string page = AnalyzedMemory(trace).page();
  CHECK_THAT(page, ContainsSubstring("No allocation in this trace returned memory"));
  CHECK_THAT(page, ContainsSubstring("1 allocation was not seen to return"));
}

TEST_CASE("The curve keeps each maximum, however long the trace gets") {
  Trace trace;
  trace.alloc(7, "0xa0").alloc(90, "0xb0").free("0xb0");
  trace.now = 3'600'000'000;  // an hour
  trace.alloc(1, "0xc0").free("0xa0");
  AnalyzedMemory analyzed(trace);
  auto columns = analyzed.memory.columns(analyzed.memory.all().curve, 10);
  CHECK(columns[0].sums[0] == 97);
  for (std::size_t i = 1; i < 9; i++) CHECK(columns[i].sums[0] == 7);
  CHECK(columns[9].sums[0] == 8);
  CHECK(columns[9].last.kinds[0] == 1);
}

TEST_CASE("A picture with names of any program's making") {
  Trace trace;
  start(trace, 1, R"(<b>&\"\u001b)").alloc(100, "0xa0");
  std::string svg = memory_svg(AnalyzedMemory(trace).memory, "a<b");
  CHECK_THAT(svg, ContainsSubstring("&lt;b&gt;&amp;&quot;?") && ContainsSubstring("a&lt;b"));
  CHECK(as_markup(printable_lines("\xef\xbf\xbf\x7fµ")) == "??µ");
}

TEST_CASE("A label at the edge of a picture is not cut off") {
  Svg svg(100, 10, "t");
  CHECK(svg.fitting(50, "1.5 s", 11) == Svg::Anchor::middle);
  CHECK(svg.fitting(95, "1.5 s", 11) == Svg::Anchor::end);
  CHECK(svg.fitting(3, "1.5 s", 11) == Svg::Anchor::start);
}

TEST_CASE("Where frees are left out of a trace, it is not said what was never freed") {
  for (bool left_out : {false, true}) {
    Trace trace;
    trace.alloc(7, "0xa0");
    TraceText text(trace.text, left_out ? R"(,"left_out":["frees","magic"])" : "");
    Memory memory(text.names());
    text.show(memory);
    std::string page = page_text([&](Page& to) {
      add_memory(to, memory, 10);
      add_facts(to, text.facts());
    });
    CHECK(memory_json(memory)["never_freed"].is_null() == left_out);
    CHECK((page.find("\nnever freed") == std::string::npos) == left_out);
    CHECK((page.find("Not all frees, or not their results: how long memory was held, and what was "
                     "never freed") != std::string::npos) == left_out);
    CHECK((page.find("Not all magic.") != std::string::npos) == left_out);
    CHECK(facts_json(text.facts())["left_out"].size() == (left_out ? 2 : 0));
  }
}
