// Answers about a part of a trace: what is in it, and what is only known from the rest.
#include "trace/read/part.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "analyze/iterations/execution.hpp"
#include "analyze/memory/memory.hpp"
#include "analyze/questions/errors.hpp"
#include "support/sample_program.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

void show_part(LineParser& parser, const std::string& text, const Part& part, Analysis& analysis,
               std::uint64_t end) {
  each_line(parser, text, [&](const Line& line) { show(line, part, analysis); });
  TraceFacts facts;
  facts.part = part;
  facts.last_ts = end;
  analysis.finish(facts);
}

}  // namespace

TEST_CASE("A part has what began in it") {
  Part part{100, 200};
  CHECK_FALSE(part.has(99));
  CHECK(part.has(100));
  CHECK(part.has(199));
  CHECK_FALSE(part.has(200));
  CHECK(part.touches(50, 101));
  CHECK(part.touches(199, 300));
  CHECK(part.touches(150, 150));
  CHECK_FALSE(part.touches(50, 100));
  CHECK_FALSE(part.touches(200, 300));
  CHECK_FALSE(part.is_whole());
  CHECK(Part{}.is_whole());
  CHECK(Part{}.touches(0, 0));
  Line header;
  header.kind = LineKind::header;
  CHECK(part.has(header));
}

TEST_CASE("Idle times are cut where the part begins and ends, and add up") {
  SampleProgram program;
  program.launch("a");
  program.wait();  // until 1020
  program.pause(1000);
  program.to_host(4, 0);  // a copy ends the idle time, and begins another
  program.pause(1000);
  program.launch("b");
  program.wait();
  auto idle_in = [&](Part part) {
    LineParser parser;
    Idle idle(parser.names(), 9, part);
    show_part(parser, program.text(), part, idle, program.now);
    return idle.processes().empty() ? Durations() : idle.processes()[0].idle;
  };
  Durations whole = idle_in({});
  REQUIRE(whole.count() == 2);
  CHECK(whole.total() == 2000);
  CHECK(idle_in({1120, 1220}).total() == 100);
  CHECK(idle_in({1120, 1220}).count() == 1);
  CHECK(idle_in({0, 1220}).total() == 200);
  CHECK(idle_in({2000, 2120}).total() == 120);
  CHECK(idle_in({2000, 2120}).count() == 2);
  CHECK(idle_in({0, 1010}).count() == 0);
  CHECK(idle_in({10'000, 20'000}).count() == 0);
  std::uint64_t sum = 0;
  for (std::uint64_t from = 0; from < 4000; from += 130) sum += idle_in({from, from + 130}).total();
  CHECK(sum == 2000);
}

TEST_CASE("What is held when a part begins is held in it, but not allocated") {
  Trace trace;
  trace.alloc(1000, "0x10").alloc(50, "0x20").free("0x20");  // until 5 µs
  std::uint64_t from = trace.now * 1000;
  trace.alloc(200, "0x30").free("0x30").alloc(30, "0x40").alloc(7, "0x50").free("0x50");
  std::uint64_t to = trace.now * 1000;
  trace.free("0x10").alloc(9000, "0x60").free("0x60");
  LineParser parser;
  Part part{from, to};
  Memory memory(parser.names(), part);
  show_part(parser, trace.text, part, memory, trace.now * 1000);

  REQUIRE(memory.holders().size() == 1);
  const MemoryFigures& figures = memory.holders()[0].kinds[0];
  CHECK(figures.allocations == 3);
  CHECK(figures.allocated == 237);
  CHECK(figures.frees == 2);
  CHECK(figures.freed == 207);
  CHECK(figures.peak == 1200);
  CHECK(figures.held == 1030);
  CHECK(memory.all().held.kinds[0] == 1030);
  const MemoryPeak& peak = memory.all().peaks[0];
  CHECK(peak.bytes() == 1200);
  CHECK(part.has(peak.ts()));
  CHECK(memory.all().at_peak[0].blocks == 2);  // also what was freed after the part
  CHECK(memory.never_freed_blocks() == 1);     // of those that were allocated in it
  CHECK(memory.never_freed_bytes() == 30);
  CHECK(memory.begin() == from);
  CHECK(memory.end() == to);
  auto columns = memory.columns(memory.all().curve, 8);
  CHECK(columns.front().sums[0] >= 1000);
  CHECK(columns.back().last.kinds[0] == 1030);
  std::uint64_t most = 0;
  for (const Memory::Level& column : columns) most = std::max(most, column.sums[0]);
  CHECK(most == 1200);
}

TEST_CASE("A part in which nothing is allocated still shows what was held") {
  Trace trace;
  trace.alloc(1000, "0x10").alloc(50, "0x20").free("0x20");
  LineParser parser;
  Part part{trace.now * 1000, trace.now * 1000 + 500};
  trace.now += 10;
  trace.free("0x10");
  Memory memory(parser.names(), part);
  show_part(parser, trace.text, part, memory, trace.now * 1000);
  CHECK(memory.all().kinds[0].allocations == 0);
  CHECK(memory.all().kinds[0].peak == 1000);
  CHECK(memory.all().peaks[0].ts() == part.from);
  CHECK(memory.all().at_peak[0].blocks == 1);
  CHECK(memory.never_freed_blocks() == 0);
  Page page({.width = 80});
  add_memory(page, memory, 9);
  CHECK_THAT(page.take(), ContainsSubstring("1000 B"));
}

TEST_CASE("How a call of a part ended is known from what came after it") {
  std::string text =
      R"({"id":1,"type":"init","op":"init","name":"cuInit","ts":1000,"duration_us":1.000,"pid":7,"tid":7,"ret":1,"error":"CUDA_ERROR_INVALID_VALUE"}
{"id":2,"type":"sync","op":"ctx","name":"cuCtxSynchronize","ts":5000,"pid":7,"tid":7,"unfinished":true}
{"type":"process","op":"exit","ts":9000,"pid":7,"comm":"sample","signal":9}
)";
  auto errors_in = [&](Part part) {
    LineParser parser;
    Errors errors(parser.names(), false);
    show_part(parser, text, part, errors, 20'000);
    return errors.answer();
  };
  Errors::Answer before_end = errors_in({4000, 8000});
  CHECK(before_end.calls == 1);
  CHECK(before_end.failed_calls == 0);
  REQUIRE(before_end.open.size() == 1);
  CHECK(before_end.open[0].process_ended);
  CHECK(before_end.open[0].open_for == 4000);
  CHECK(before_end.exits.empty());
  Errors::Answer at_end = errors_in({8000, 20'000});
  CHECK(at_end.calls == 0);
  CHECK(at_end.open.empty());
  REQUIRE(at_end.exits.size() == 1);
  REQUIRE(at_end.exits[0].last_failure);
  CHECK(at_end.exits[0].last_failure->id == 1);
  CHECK(at_end.exits[0].last_call->id == 2);
}

TEST_CASE("Phases of a part are as long as it is, and those of all parts as the whole") {
  SampleProgram program;
  program.process("start");
  program.pause(500);
  program.init(1000);
  program.alloc(50);
  program.to_device(1 << 20, 400);
  for (int i = 0; i < 8; i++) {
    program.launch("a", 10);
    program.launch("b", 10);
    if (i == 0) program.load_code(5000);
    program.wait(40);
    program.pause(25);
  }
  program.process("exit");
  LineParser parser;
  analyze::Execution whole(parser.names(), {}, 0);
  show_part(parser, program.text(), {}, whole, program.now);
  REQUIRE(whole.iterations().count == 8);
  std::map<std::string, std::uint64_t> sums;
  std::uint64_t calls = 0, iterations = 0, launches = 0;
  std::vector<Part> parts;
  std::uint64_t until = 0;
  for (const Iteration& one : whole.iterations().each) {
    if (one.begin > until) parts.push_back({until, one.begin});
    parts.push_back({one.begin, one.end});
    until = one.end;
  }
  parts.push_back({until, Part::OPEN});
  for (const Part& part : parts) {
    LineParser names;
    analyze::Execution execution(names.names(), {}, 0, part);
    show_part(names, program.text(), part, execution, program.now);
    std::uint64_t sum = 0;
    for (const Phase& phase : execution.phases().phases) {
      sums[phase.name] += phase.time;
      sum += phase.time;
      calls += phase.calls;
    }
    CHECK(sum == execution.phases().end - execution.phases().begin);
    CHECK(execution.iterations().count == 8);
    iterations += execution.iterations().in_part;
    launches += execution.thread()->launches_in_part;
  }
  for (const Phase& phase : whole.phases().phases) {
    INFO(phase.name);
    CHECK(sums[phase.name] == phase.time);
  }
  CHECK(calls == whole.thread()->all.calls);
  CHECK(iterations == 8);
  CHECK(launches == 16);
}
