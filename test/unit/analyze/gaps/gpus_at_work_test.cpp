#include "analyze/gaps/gpus_at_work.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <random>

#include "support/measured_gpus.hpp"
#include "support/random_numbers.hpp"
#include "support/trace_text.hpp"
#include "support/units.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using namespace samples;

TEST_CASE("A trace without what GPUs did measures nothing") {
  SampleProgram program;
  program.launch("a");
  program.wait();
  Measured measured(program);
  CHECK_FALSE(measured.times.measured());
  CHECK(measured.times.gpus().empty());
}

TEST_CASE("A copy from the host to the host is not what a GPU did") {
  SampleProgram program;
  program.launch("a");
  program.launch("b");
  ran(program, 1, 10'000, 10'000);
  ran(program, 2, 15'000, 30'000, "HtoH");
  ran(program, 2, 50'000, 10'000);
  Measured measured(program);
  CHECK(measured.gpu().operations == 2);
  CHECK(measured.gpu().busy_time() == 20'000);
  CHECK(measured.gpu().idle_time() == 30'000);
}

TEST_CASE("An asynchronous copy to the host that was done when its call returned was waited for") {
  for (const std::string way : {"DtoH", "HtoH"}) {
    SampleProgram program;
    program.launch("a", 1'000);
    program.call("transfer", "DtoH", "cuMemcpyDtoHAsync", 40'000, R"(,"size":8,"async":true)");
    program.pause(3'000);
    program.launch("b", 1'000);
    ran(program, 1, 4'000, 30'000, "a");
    ran(program, 2, 35'000, 4'000, way);
    ran(program, 3, 46'000, 4'000, "b");
    Measured measured(program);
    CriticalPath path = measured.times.path_of(measured.gpu().process, program.tid, 1'000, 50'000);
    CHECK(path.working >= 34'000);  // of a and b
    CHECK(path.host <= 11'000);
    CHECK(measured.times.waited().calls == 1);
    CHECK(measured.times.waited().time == 40'000);
  }
}

TEST_CASE(
    "A copy that waited is a call, however many operations it has; a graph's nodes do not "
    "wait") {
  SampleProgram program;
  program.launch("a", 1'000);
  program.call("transfer", "DtoH", "cuMemcpyBatchAsync", 40'000, R"(,"size":8,"async":true)");
  program.launch_graph(R"("graph":1)", 40'000);
  ran(program, 1, 4'000, 5'000, "a");
  ran(program, 2, 10'000, 4'000, "DtoH");
  ran(program, 2, 15'000, 4'000, "DtoH");
  ran(program, 3, 50'000, 4'000, "DtoH", R"(,"node":0)");
  Measured measured(program);
  CHECK(measured.times.waited().calls == 1);
  CHECK(measured.times.waited().time == 40'000);
}

TEST_CASE("What ran at once is counted once in the time that the GPU was busy, in any order") {
  SampleProgram program;
  program.launch("a");
  program.launch("b");
  program.launch("c");
  ran(program, 3, 50'000, 10'000);
  ran(program, 2, 15'000, 20'000);  // beside the first, on another stream
  ran(program, 1, 10'000, 10'000);
  ran(program, 2, 30'000, 10'000, "HtoD");
  ran(program, 2, 40'000, 0);
  Measured measured(program);
  CHECK(measured.gpu().busy_time() == 40'000);
  CHECK(measured.gpu().window() == 50'000);
  CHECK(measured.gpu().idle_time() == 10'000);
  CHECK(measured.gpu().busy.of(GpuOp::kernel).sum == 40'000);
  CHECK(measured.gpu().busy.of(GpuOp::kernel).united.total() == 35'000);
  CHECK(measured.gpu().busy.overlap() == 5'000);
  CHECK(measured.gpu().idle.count() == 1);
  CHECK(measured.gpu().by_cause.total() == 10'000);
}

TEST_CASE(
    "A host that issues work late is why the GPU is idle: in calls, between them, or in a pause") {
  SampleProgram program;
  program.now = 10 * US;
  program.launch("a", 2 * US);
  std::uint64_t begin = program.now;
  SECTION("in calls and between them") {
    program.pause(10 * US);
    program.load_code(50 * US);
    program.pause(20 * US);
    program.launch("b", 4 * US);
    ran(program, 1, begin - 5 * US, 5 * US, "a");
    ran(program, 3, program.now + 3 * US, 5 * US, "b");
    Measured measured(program);
    CHECK(measured.idle(IdleCause::calls) == 54 * US);
    CHECK(measured.idle(IdleCause::outside) == 30 * US);
    CHECK(measured.idle(IdleCause::latency) == 3 * US);
    CHECK(measured.gpu().idle_time() == 87 * US);
    REQUIRE(measured.times.longest().size() == 1);
    const GpuGap& gap = measured.times.longest().front();
    CHECK(gap.times.main() == IdleCause::calls);
    CHECK(measured.times.name_of(gap.before) == "a");
    CHECK(measured.times.name_of(gap.after) == "b");
    CHECK(gap.after_call == 3);
    REQUIRE(gap.meanwhile.functions.size() == 2);
    CHECK(measured.times.names().text(gap.meanwhile.functions[0].name) == "cuLibraryLoadData");
    CHECK(gap.meanwhile.functions[0].time == 50 * US);
    CHECK(measured.gpu().to_idle_start.max() == 7 * US);
  }
  SECTION("a pause, after the end of a wait") {
    program.wait(30 * US);
    program.pause(5 * MS);
    program.launch("b", 4 * US);
    ran(program, 1, begin, 20 * US, "a");
    ran(program, 3, program.now, 5 * US, "b");
    Measured measured(program);
    CHECK(measured.idle(IdleCause::calls) == 14 * US);  // the wait's end, and the launch
    CHECK(measured.idle(IdleCause::pause) == 5 * MS);
    CHECK(measured.idle(IdleCause::outside) == 0);
  }
  SECTION("a kernel may begin before its call returns") {
    program.launch("b", 40 * US);
    ran(program, 1, begin - US, 2 * US, "a");
    ran(program, 2, begin + 30 * US, 5 * US, "b");
    Measured measured(program);
    CHECK(measured.idle(IdleCause::calls) == 29 * US);
    CHECK(measured.gpu().idle_time() == 29 * US);
  }
}

TEST_CASE("What other threads did while a GPU was idle is shown, but for their waits") {
  SampleProgram program;
  program.now = 10 * US;
  program.launch("a", 2 * US);
  std::uint64_t begin = program.now, tid = program.tid;
  program.tid = 77;
  program.pause(3 * MS);
  program.load_code(50 * US);
  program.now -= 20 * US;
  program.tid = 78;
  program.load_code(30 * US);  // beside the other
  program.wait(10 * MS);
  program.tid = static_cast<std::uint32_t>(tid);
  program.now -= 4 * MS;  // the wait has not ended yet
  program.launch("b", 4 * US);
  std::uint64_t end = program.now + 3 * US;
  ran(program, 1, begin - 5 * US, 5 * US, "a");
  ran(program, 5, end, 5 * US, "b");
  constexpr std::uint64_t OUTSIDE = 9 * MS;
  {
    Measured measured(program);
    CHECK(measured.idle(IdleCause::calls) == 4 * US);
    CHECK(measured.idle(IdleCause::others) == 60 * US);
    CHECK(measured.idle(IdleCause::outside) == OUTSIDE);
    CHECK(measured.idle(IdleCause::pause) == 0);
  }
  // A part has the causes of the whole, also where there was no call.
  Measured part(program, {begin + MS, begin + 2 * MS});
  CHECK(part.idle(IdleCause::outside) == MS);
  CHECK(part.idle(IdleCause::pause) == 0);
}

TEST_CASE("What another thread did while a GPU was idle is shown whole") {
  SampleProgram program;
  program.now = 10 * US;
  program.launch("a", 2 * US);
  std::uint64_t begin = program.now;
  std::uint32_t tid = program.tid;
  auto launch_b = [&] {
    program.tid = tid;
    program.now = 15 * MS;
    program.launch("b", 4 * US);
    ran(program, 1, begin - 5 * US, 5 * US, "a");
    ran(program, program.calls(), program.now + 3 * US, 5 * US, "b");
  };
  auto other = [&](std::uint64_t ns) {
    program.tid = 77;
    program.now = MS;
    program.load_code(ns);
  };
  SECTION("where its line comes after the launch") {
    launch_b();
    other(20 * MS);
    Measured measured(program);
    CHECK(measured.idle(IdleCause::others) == 14 * MS);
    CHECK(measured.idle(IdleCause::pause) == 0);
  }
  SECTION("where shorter calls were made meanwhile") {
    program.now = 14 * MS;
    program.call("event", "query", "cuEventQuery", US);
    other(13 * MS + 900 * US);
    launch_b();
    Measured measured(program);
    CHECK(measured.idle(IdleCause::others) == 13 * MS + 899 * US);
    CHECK(measured.idle(IdleCause::calls) == 5 * US);
  }
  SECTION("where thousands of processes came after it") {
    other(10 * MS);
    launch_b();
    for (program.pid = 1000; program.pid < 6000; program.pid++) {
      program.tid = program.pid;
      program.init(10);
    }
    Measured measured(program);
    CHECK(measured.idle(IdleCause::others) == 10 * MS);
  }
  SECTION("but for copies to the host, which may have waited") {
    program.tid = 77;
    program.now = MS;
    program.call("transfer", "DtoH", "cuMemcpyDtoHAsync", 10 * MS, R"(,"size":8,"async":true)");
    launch_b();
    Measured measured(program);
    CHECK(measured.idle(IdleCause::others) == 0);
  }
}

TEST_CASE("What was issued in time waited for something, or for the GPU itself") {
  SampleProgram program;
  program.now = 10 * US;
  program.launch("a", 2 * US);
  auto gap_of = [&](std::uint64_t ns, const std::string& more = {}) {
    std::uint64_t call = program.calls();
    ran(program, 1, 20 * US, 100 * US, "a");
    ran(program, call, 120 * US + ns, 5 * US, "b", more);
    return Measured(program).gpu().by_cause;
  };
  SECTION("launch latency") {
    program.launch("b", 2 * US);
    CHECK(gap_of(2 * US)[IdleCause::latency] == 2 * US);
  }
  SECTION("it is not known why") {
    program.launch("b", 2 * US);
    CHECK(gap_of(40 * US)[IdleCause::queued] == 40 * US);
  }
  SECTION("an event") {
    program.call("stream", "wait_event", "cuStreamWaitEvent", US,
                 R"(,"stream":"0x0","args":{"hEvent":"0x5"})");
    program.launch("b", 2 * US);
    CHECK(gap_of(40 * US)[IdleCause::dependency] == 40 * US);
  }
  SECTION("an event of another stream") {
    program.call("stream", "wait_event", "cuStreamWaitEvent", US,
                 R"(,"stream":"0x99","args":{"hEvent":"0x5"})");
    program.launch("b", 2 * US);
    CHECK(gap_of(40 * US)[IdleCause::queued] == 40 * US);
  }
  SECTION("an event that what came between has waited for") {
    program.call("stream", "wait_event", "cuStreamWaitEvent", US,
                 R"(,"stream":"0x0","args":{"hEvent":"0x5"})");
    program.launch("between", 2 * US);
    program.launch("b", 2 * US);
    CHECK(gap_of(40 * US)[IdleCause::queued] == 40 * US);
  }
}

TEST_CASE("Nodes of one launch of a graph wait for each other, and only the first for the call") {
  SampleProgram program;
  program.now = 10 * US;
  program.launch_graph(R"("graph":1)", 5 * US);
  ran(program, 1, 60 * US, 5 * US, "b", R"(,"node":2)");
  ran(program, 1, 20 * US, 10 * US, "a", R"(,"node":1)");
  Measured measured(program);
  CHECK(measured.idle(IdleCause::dependency) == 30 * US);
  CHECK(measured.gpu().to_start.count() == 1);
  CHECK(measured.gpu().to_start.max() == 10 * US);
}

TEST_CASE("Where the call or what its thread did is not known, neither is the cause") {
  SampleProgram program;
  program.launch("a");
  ran(program, 1, 10 * US, 5 * US);
  ran(program, 0, 40 * US, 5 * US);
  ran(program, 77, 60 * US, 5 * US);  // no such call
  Measured measured(program);
  CHECK(measured.idle(IdleCause::unknown) == 40 * US);
  CHECK(measured.gpu().unjoined == 2);
  CHECK(measured.gpu().operations == 3);
}

TEST_CASE("What a process's GPU did after its end is still the process's") {
  SampleProgram program;
  program.process("start");
  program.launch("a");
  program.process("exit");
  program.process("start");
  program.launch("b");
  ran(program, 1, 10 * US, 5 * US);
  ran(program, 2, 20 * US, 7 * US);
  Measured measured(program);
  REQUIRE(measured.times.gpus().size() == 2);
  CHECK(measured.times.gpus()[0].busy_time() == 7 * US);
  CHECK(measured.times.gpus()[0].process != measured.times.gpus()[1].process);
}

TEST_CASE("Busy and idle times are cut to a part, and those of all parts are the whole") {
  SampleProgram program;
  program.launch("a");
  for (std::uint64_t at = 10; at < 100; at += 10) ran(program, 1, at * US, 4 * US);
  Measured whole(program);
  std::uint64_t busy = 0, idle = 0;
  for (std::uint64_t from = 0; from < 120; from += 7) {
    Measured part(program, {from * US, (from + 7) * US});
    if (part.times.gpus().empty()) continue;
    busy += part.gpu().busy_time();
    idle += part.gpu().idle_time();
    CHECK(part.gpu().by_cause.total() == part.gpu().idle_time());
  }
  CHECK(busy == whole.gpu().busy_time());
  CHECK(idle == whole.gpu().idle_time());
  CHECK(Measured(program, {500 * US, 600 * US}).times.measured());
}

TEST_CASE("Absurd times do no harm") {
  SampleProgram program;
  program.launch("a");
  ran(program, 1, 4'000'000'000'000'000'000ULL, 4'000'000'000'000'000'000ULL);
  ran(program, 1, 4'000'000'000'000'000'000ULL, 4'000'000'000'000'000'000ULL);
  ran(program, 1, 0, 0);
  ran(program, 1, 5, 4'000'000'000'000'000'000ULL, "HtoD");
  ran(program, 1, 7, 1, "set", R"(,"node":1)");
  program.line(R"({"type":"gpu","op":"kernel"})");
  program.line(R"({"type":"gpu","op":"copy","pid":7,"device":-5})");
  Measured measured(program);
  CHECK(measured.times.gpus().size() == 3);
  CHECK(!gpus_at_work_json(measured.times).dump().empty());
  CHECK(!page_text([&](Page& page) { add_gpus_at_work(page, measured.times, {}, 5); }).empty());
}

TEST_CASE("The earlier half of more than are kept is settled; what is later still is counted") {
  SampleProgram program;
  program.launch("a");
  for (std::uint64_t at = 1; at <= 100; at++) ran(program, 1, at * 100, 60);
  ran(program, 1, 150, 40);
  Measured measured(program, {}, 16);
  CHECK(measured.gpu().busy_time() == 6000);
  CHECK(measured.gpu().late == 1);
  CHECK(measured.gpu().late_time == 40);
  CHECK(measured.gpu().busy.of(GpuOp::kernel).sum == 6040);
  CHECK(measured.gpu().operations == 101);
}

TEST_CASE("Mixed up lines of several streams come to what a reference finds") {
  std::mt19937 random(3);
  for (int round = 0; round < 50; round++) {
    SampleProgram program;
    program.launch("a");
    std::vector<bool> runs(2000);
    std::uint64_t sum = 0, first = runs.size(), last = 0;
    for (unsigned i = 1 + any(random, 60); i; i--) {
      std::uint64_t begin = any(random, 1900), ns = any(random, 50);
      for (std::uint64_t t = begin; t < begin + ns; t++) runs[t] = true;
      sum += ns;
      first = std::min(first, begin);
      last = std::max(last, begin + ns);
      ran(program, 1, begin, ns);
    }
    Measured measured(program);
    auto busy = static_cast<std::uint64_t>(std::count(runs.begin(), runs.end(), true));
    CHECK(measured.gpu().busy_time() == busy);
    CHECK(measured.gpu().busy.of(GpuOp::kernel).sum == sum);
    CHECK(measured.gpu().idle_time() == last - first - busy);
    CHECK(measured.gpu().by_cause.total() == measured.gpu().idle_time());
    GpuCurve::Share all = measured.gpu().curve.between(first, last);
    CHECK(all.busy == busy);
    CHECK(all.idle.total() == measured.gpu().idle_time());
  }
}

TEST_CASE("What is missing is reported") {
  SampleProgram program;
  program.launch("a");
  ran(program, 1, 10, 5);
  TraceFacts facts;
  facts.header = *header_in(R"({"type":"trace","gpu_timing":"graphs"})");
  facts.end = end_in(
      R"({"type":"end","gpu_operations":{"operations":90,"calls":100,"invalid":10,"unjoined":{"not_reported":8}}})");
  Measured measured(program, {}, GpusAtWork::MAX_KEPT, facts);
  CHECK(measured.times.missing_share() == 10);
  CHECK(measured.times.is_whole_graphs());
}

TEST_CASE("The earliest of more calls than are kept are forgotten") {
  LineParser parser;
  ThreadCalls calls(4);
  SampleProgram program;
  program.now = 100;
  for (int i = 0; i < 8; i++) program.launch("a", 10);  // from 100 to 180
  auto seen = each_line(parser, program.text(), [&](const Line& line) { calls.call(line); });
  ThreadTime in_gap;
  calls.look_at(1, 7, 145, 175, 171, in_gap);
  CHECK(in_gap.known);
  CHECK(in_gap.in_calls == 30);
  CHECK(in_gap.begun == 3);
  calls.look_at(1, 7, 110, 175, 171, in_gap);
  CHECK_FALSE(in_gap.known);
  calls.look_at(1, 8, 145, 175, 171, in_gap);
  CHECK_FALSE(in_gap.known);
}
