#include "analyze/gaps/idle.hpp"

#include <catch2/catch_test_macros.hpp>

#include "idle_of.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

TEST_CASE("From a wait's return to the next launch the GPU was idle") {
  SampleProgram program;
  program.init(1000);  // nothing is idle before the first work
  program.launch("a");
  program.wait();
  program.pause(300);
  program.launch("b");
  program.pause(50);  // it may be at work on b
  program.launch("c");
  program.wait();
  program.pause(10'000);  // there is no next
  IdleAnswer answer = answer_of(program);
  REQUIRE(answer.processes.size() == 1);
  CHECK(answer.processes[0].idle.total() == 300);
  CHECK(answer.processes[0].idle.count() == 1);
  CHECK(answer.processes[0].between.total() == 50);
  CHECK(answer.processes[0].first_work == 2000);
  CHECK(answer.until == "cuLaunchKernel");
  REQUIRE(answer.idle.size() == 1);
  CHECK(answer.idle[0].begin == 2020);
  CHECK(answer.idle[0].after == 3);
  CHECK(answer.idle[0].until == 4);
  REQUIRE(answer.between.size() == 1);
  CHECK(answer.between[0].time() == 50);
}

TEST_CASE("What the thread did meanwhile is shown") {
  SampleProgram program;
  program.launch("a");
  program.wait();
  program.pause(100);
  program.alloc(60);
  program.load_code(700);
  program.pause(40);
  program.launch("b");
  IdleAnswer answer = answer_of(program);
  REQUIRE(answer.idle.size() == 1);
  CHECK(answer.idle[0].time() == 900);
  CHECK(answer.idle[0].in_calls == 760);
  CHECK(answer.idle[0].longest == 700);
  CHECK(answer.processes[0].in_calls == 760);
  CHECK(answer.processes[0].meanwhile.size() == 2);
}

TEST_CASE("What another thread issued during a wait is still to be done") {
  SampleProgram program;
  program.launch("a");
  std::uint64_t begin = program.now;
  program.pause(50);
  program.tid = 8;
  program.launch("b");
  program.tid = 7;
  std::uint64_t end = program.now + 100;
  program.now = begin;
  program.wait(end - begin);
  program.pause(300);
  program.launch("c");
  CHECK(idle_time(program) == 0);
}

TEST_CASE("Copies that wait end an idle time and begin the next") {
  SampleProgram program;
  program.launch("a");
  program.to_host(64, 40);
  program.pause(100);
  program.to_device(64, 40);
  program.pause(200);
  program.launch("b");
  IdleAnswer answer = answer_of(program);
  CHECK(answer.processes[0].idle.count() == 2);
  CHECK(answer.processes[0].idle.total() == 300);
}

TEST_CASE("Failed and unfinished waits, and those without a return, show nothing") {
  SampleProgram program;
  program.launch("a");
  program.line(
      R"({"id":90,"type":"sync","op":"stream","name":"cuStreamSynchronize","ts":1020,"duration_us":0.010,"pid":7,"tid":7,"ret":700,"error":"CUDA_ERROR_ILLEGAL_ADDRESS","stream":"0x0"})");
  program.line(
      R"({"id":91,"type":"sync","op":"stream","name":"cuStreamSynchronize","ts":1040,"pid":7,"tid":7,"stream":"0x0","unfinished":true})");
  program.pause(500);
  program.launch("b");
  IdleAnswer answer = answer_of(program);
  CHECK(answer.processes[0].idle.count() == 0);
  CHECK(answer.processes[0].untimed_waits == 1);
}

TEST_CASE("Processes are apart, the most idle first, and a pid that is used again is another") {
  SampleProgram program;
  for (std::uint32_t pid : {7, 8, 7}) {
    program.pid = program.tid = pid;
    program.launch("a");
    program.wait();
    program.pause(pid * 100);
    program.launch("b");
    program.process("exit");
  }
  IdleAnswer answer = answer_of(program);
  REQUIRE(answer.processes.size() == 3);
  CHECK(answer.processes[0].pid == 8);
  CHECK(answer.processes[0].idle.total() == 800);
  CHECK(answer.processes[1].idle.total() == 700);
  CHECK(answer.processes[2].idle.total() == 700);
}

TEST_CASE("Only the longest are kept") {
  SampleProgram program;
  for (std::uint64_t i : {5, 1, 4, 2, 3}) {
    program.launch("a");
    program.wait();
    program.pause(i * 10);
  }
  program.launch("a");
  IdleAnswer answer = answer_of(program);
  REQUIRE(answer.idle.size() == 3);
  CHECK(answer.idle[0].time() == 50);
  CHECK(answer.idle[1].time() == 40);
  CHECK(answer.idle[2].time() == 30);
}

TEST_CASE("A launch that was under way when a wait began is still to be done") {
  SampleProgram program;
  program.tid = 8;
  program.launch("a", 100);  // from 1000 to 1100
  program.tid = 7;
  program.now = 1050;
  program.wait(100);
  program.pause(600);
  program.launch("b");
  CHECK(idle_time(program) == 0);
}

TEST_CASE("A time is idle or between launches, not both") {
  SampleProgram program;
  program.launch("a");
  program.call("stream", "query", "cuStreamQuery", 5, R"(,"stream":"0x0")");
  program.pause(300);
  program.launch("b");
  IdleAnswer answer = answer_of(program);
  CHECK(answer.processes[0].idle.total() == 300);
  CHECK(answer.processes[0].between.count() == 0);
}

TEST_CASE("What was called after the last work was in no idle time") {
  SampleProgram program;
  program.launch("a");
  program.wait();
  program.pause(20);
  program.launch("b");
  program.wait();
  program.load_code(9000);
  IdleAnswer answer = answer_of(program);
  CHECK(answer.processes[0].meanwhile.empty());
}

TEST_CASE("A copy that was not seen to return shows nothing, and failed records are none") {
  SampleProgram program;
  program.launch("a");
  program.line(
      R"({"id":90,"type":"transfer","op":"DtoH","name":"cuMemcpyDtoH","ts":1020,"pid":7,"tid":7,"size":8,"return_lost":true})");
  program.pause(500);
  program.launch("b");
  IdleAnswer answer = answer_of(program);
  CHECK(answer.processes[0].idle.count() == 0);
  CHECK(answer.processes[0].untimed_waits == 1);
}

TEST_CASE("What was outside of calls is not shown where it is not known how long they took") {
  SampleProgram program;
  program.launch("a");
  program.wait();
  program.alloc(60);
  SECTION("of none") {
    program.launch("b");
    CHECK(outside_calls(answer_of(program).idle[0]) == "0.0 %");
  }
  SECTION("of one") {
    program.line(
        R"({"id":90,"type":"memory","op":"free","name":"cuMemFree","ts":1090,"pid":7,"tid":7,"return_lost":true})");
    program.pause(40);
    program.launch("b");
    IdleAnswer answer = answer_of(program);
    CHECK(answer.idle[0].untimed == 1);
    CHECK(answer.processes[0].untimed == 1);
    CHECK(outside_calls(answer.idle[0]) == "at most 40.0 %");
  }
  CHECK(outside_calls(100, 0, 3) == "not known");
}

TEST_CASE("The most idle processes are listed one by one, and the others together") {
  SampleProgram program;
  constexpr std::uint32_t PROCESSES = 300;
  for (std::uint32_t pid = 1; pid <= PROCESSES; pid++) {
    program.pid = program.tid = pid;
    program.launch("a");
    program.wait();
    program.pause(pid);
    program.launch("b");
  }
  LineParser parser;
  Idle idle(parser.names(), 3);
  program.show_to(parser, idle);
  REQUIRE(idle.processes().size() == 256);
  CHECK(idle.processes().front().pid == PROCESSES);
  CHECK(idle.other_processes() == 44);
  CHECK(idle.others().idle.total() == 44 * 45 / 2);
  CHECK(idle.others().working_time == 44 * 30 + 44 * 45 / 2);
}
