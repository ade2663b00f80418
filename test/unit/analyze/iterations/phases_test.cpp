#include "analyze/iterations/phases.hpp"

#include <catch2/catch_test_macros.hpp>

#include "sample_threads.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

const Phase& phase(const Phases& phases, std::string_view name) {
  for (const Phase& one : phases.phases)
    if (one.name == name) return one;
  FAIL("no phase " << name);
  return phases.phases.front();
}

std::uint64_t time_of_all(const Phases& phases) {
  std::uint64_t sum = 0;
  for (const Phase& one : phases.phases) sum += one.time;
  return sum;
}

Phases phases_of(const SampleProgram& program) {
  auto threads = threads_of(program);
  REQUIRE(!threads.empty());
  return find_phases(threads[0], find_iterations(threads[0]), program.now);
}

}  // namespace

TEST_CASE("Phases follow one another, and their times are the whole time") {
  SampleProgram program;
  program.process("start");
  program.pause(500);
  program.init(1000);
  program.alloc(50);
  program.to_device(1 << 20, 400);
  program.pause(300);
  program.to_device(1 << 20, 400);
  program.to_device(16, 20);  // the input
  for (int i = 0; i < 6; i++) {
    token(program, 4);
    if (i == 0) program.load_code(5000);
    program.wait(40);
  }
  program.to_host(64, 30);
  program.pause(200);
  program.process("exit");
  auto threads = threads_of(program);
  REQUIRE(threads.size() == 1);
  Iterations iterations = find_iterations(threads[0]);
  Phases phases = find_phases(threads[0], iterations, program.now + 12345);

  CHECK(phases.begin == 1000);
  CHECK(phases.end == program.now);
  CHECK(phases.loading_calls == 3);
  CHECK(phase(phases, "before the first call").time == 500);
  CHECK(phase(phases, "initialisation").time == 1000);
  CHECK(phase(phases, "loading").time == 1150);
  CHECK(phase(phases, "input transfer").time == 20);
  CHECK(phase(phases, "modules and compiling").time == 5000);
  CHECK(phase(phases, "warm-up").time == 150);
  CHECK(phase(phases, "inference").time == 5 * 150);
  CHECK(phase(phases, "synchronisation").time == 6 * 40);
  CHECK(phase(phases, "output transfer").time == 30);
  CHECK(phase(phases, "clean-up").time == 200);
  std::uint64_t sum = 0;
  for (const Phase& one : phases.phases) sum += one.time;
  CHECK(sum == phases.end - phases.begin);
}

TEST_CASE("Where the trace does not show a phase, that is said") {
  SampleProgram program;  // attached to late
  for (int i = 0; i < 50; i++) program.launch("storm");
  auto threads = threads_of(program);
  Phases phases = find_phases(threads[0], find_iterations(threads[0]), program.now);
  for (auto name : {"initialisation", "loading", "warm-up", "output transfer"}) {
    CAPTURE(name);
    CHECK_FALSE(phase(phases, name).seen);
    CHECK_FALSE(phase(phases, name).note.empty());
  }
  CHECK(phase(phases, "work").time == 500);
  CHECK(phases.loading_calls == 0);
}

TEST_CASE("Phases are the whole time without iterations, and with those inside of one wait") {
  SampleProgram once;
  once.init(100);
  once.alloc(10);
  once.load_code(200);
  once.launch("add");
  once.wait(30);
  once.to_host(64, 500);
  once.load_code(300);
  Phases phases = phases_of(once);
  CHECK(time_of_all(phases) == phases.end - phases.begin);
  CHECK(phase(phases, "work").time == 20);
  CHECK(phase(phases, "output transfer").time == 500);

  SampleProgram row;
  for (int i = 0; i < 8; i++) {
    token(row, 4);
    if (i == 0 || i == 5) row.load_code(5000);
  }
  row.wait(70'000);
  phases = phases_of(row);
  CHECK(time_of_all(phases) == phases.end - phases.begin);
  CHECK(phase(phases, "modules and compiling").time == 10'000);
  CHECK(phase(phases, "warm-up").time == 150);
  CHECK(phase(phases, "synchronisation").time == 70'000);
}

TEST_CASE("A copy whose return was lost does not turn phases back") {
  SampleProgram program;
  program.init(100);
  for (int i = 0; i < 5; i++) {
    token(program, 4);
    program.wait(40);
  }
  program.line(
      R"({"id":99,"type":"transfer","op":"HtoD","name":"cuMemcpyHtoD","ts":1100,"pid":7,"tid":7,"size":1048576,"return_lost":true})");
  Phases phases = phases_of(program);
  CHECK(time_of_all(phases) == phases.end - phases.begin);
  for (const Phase& one : phases.phases) CHECK(one.calls < 1000);
  CHECK(phase(phases, "synchronisation").time == 200);
}

TEST_CASE("A call that does not return is what it was, to the end of its process or the trace") {
  SampleProgram program;
  for (int i = 0; i < 5; i++) {
    token(program, 4);
    program.wait(30);
  }
  std::string hangs = R"({"id":99,"type":"sync","op":"ctx","name":"cuCtxSynchronize","ts":)" +
                      std::to_string(program.now) + R"(,"pid":7,"tid":7,"unfinished":true})";
  std::uint64_t since = program.now;
  SECTION("its process ends") {
    program.line(hangs);
    program.pause(10'000);
    program.process("exit");
    CHECK(phase(phases_of(program), "synchronisation").time == 5 * 30 + 10'000);
  }
  SECTION("the trace ends") {
    program.line(hangs);
    program.pause(5'000);
    program.tid = 8;  // goes on
    program.launch("other");
    LineParser parser;
    Idle idle(parser.names(), 0);
    ThreadsAtWork threads({}, idle);
    each_line(parser, program.text(), [&](const Line& line) { threads.line(line); });
    TraceFacts facts;
    facts.last_ts = program.now;
    threads.finish(facts);
    const ThreadWork& work = threads.threads().front();
    Phases phases = find_phases(work, find_iterations(work), program.now);
    CHECK(phase(phases, "synchronisation").time == 5 * 30 + program.now - since);
    CHECK(phase(phases, "clean-up").time == 0);
  }
  SECTION("the trace begins and ends during the call") {
    SampleProgram kept;
    kept.line(hangs);
    LineParser parser;
    Idle idle(parser.names(), 0);
    const Part part{.recorded_from = since + 1000};
    ThreadsAtWork threads({}, idle, part);
    each_line(parser, kept.text(), [&](const Line& line) { threads.line(line); });
    TraceFacts facts;
    facts.last_ts = since + 6000;
    threads.finish(facts);
    const ThreadWork& work = threads.threads().front();
    Phases phases = find_phases(work, find_iterations(work), since + 6000, part);
    CHECK(phase(phases, "synchronisation").time == 5000);
    CHECK(phases.end - phases.begin == 5000);
  }
  SECTION("it was left in another way, and the thread goes on") {
    program.line(hangs);
    program.pause(10'000);
    program.alloc(10);
    program.process("exit");
    CHECK(phase(phases_of(program), "synchronisation").time == 5 * 30);
  }
}
