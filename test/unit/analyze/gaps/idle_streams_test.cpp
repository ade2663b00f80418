// Whether a wait for a stream, an event or a context leaves work to be done.
#include <catch2/catch_test_macros.hpp>

#include "idle_of.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

void event(SampleProgram& program, std::string_view op, std::string_view name,
           const std::string& more = {}) {
  program.call(op == "wait" ? "sync" : "event", op == "wait" ? "event" : op, name, 5,
               R"(,"args":{"hEvent":"0xe1"})" + more);
}

void set_context(SampleProgram& program, std::string_view context) {
  program.call("context", "set_current", "cuCtxSetCurrent", 5,
               fmt::format(R"(,"args":{{"ctx":"{}"}})", context));
}

}  // namespace

TEST_CASE("A wait for one stream leaves the others at work") {
  SampleProgram program;
  program.launch("a", 10, "0x1");
  program.launch("b", 10, "0x2");
  program.wait(10, "0x1");
  program.pause(500);
  program.launch("c", 10, "0x1");
  CHECK(idle_time(program) == 0);
  program.wait(10, "0x1");
  program.wait(10, "0x2");
  program.pause(70);
  program.launch("d", 10, "0x1");
  CHECK(idle_time(program) == 70);
  program.call("sync", "ctx", "cuCtxSynchronize", 10);
  program.pause(30);
  program.launch("e", 10, "0x3");
  CHECK(idle_time(program) == 100);
}

TEST_CASE("Events show that their stream is done, if nothing came after them") {
  SampleProgram program;
  program.launch("a", 10, "0x1");
  event(program, "record", "cuEventRecord", R"(,"stream":"0x1")");
  event(program, "wait", "cuEventSynchronize");
  program.pause(80);
  program.launch("b", 10, "0x1");
  CHECK(idle_time(program) == 80);
  event(program, "record", "cuEventRecord", R"(,"stream":"0x1")");
  program.launch("c", 10, "0x1");
  event(program, "wait", "cuEventSynchronize");
  program.pause(500);
  program.launch("d", 10, "0x1");
  CHECK(idle_time(program) == 80);
  event(program, "record", "cuEventRecord", R"(,"stream":"0x1")");
  event(program, "query", "cuEventQuery");
  program.pause(20);
  program.launch("e", 10, "0x1");
  CHECK(idle_time(program) == 100);
}

TEST_CASE("The default stream that each thread has is another for each") {
  SampleProgram program;
  program.tid = 8;
  program.launch("a", 10, "0x2");
  program.tid = 7;
  program.launch("b", 10, "0x2");
  program.wait(10, "0x2");
  program.pause(500);
  program.launch("c", 10, "0x2");
  CHECK(idle_time(program) == 0);
  SampleProgram legacy;
  legacy.launch("a", 10, "0x0");
  legacy.wait(10, "0x1");
  legacy.pause(40);
  legacy.launch("b", 10, "0x0");
  CHECK(idle_time(legacy) == 40);
}

TEST_CASE("Events that were destroyed give way to others, and known ones are recorded anew") {
  SampleProgram program;
  program.launch("a", 10, "0x5");
  event(program, "record", "cuEventRecord", R"(,"stream":"0x5")");
  event(program, "destroy", "cuEventDestroy");
  event(program, "wait", "cuEventSynchronize");  // of another event by now
  program.pause(100);
  program.launch("b", 10, "0x5");
  CHECK(idle_time(program) == 0);
}

TEST_CASE("A wait for a context leaves the work of others") {
  SampleProgram program;
  auto wait = [&](const std::string& more) {
    program.call("sync", "ctx", "cuCtxSynchronize", 10, more);
  };
  set_context(program, "0xc1");
  program.launch("a", 10, "0x7");
  program.tid = 8;
  set_context(program, "0xc2");
  program.launch("b", 10, "0x8");
  wait("");
  program.pause(500);
  program.launch("c", 10, "0x8");
  CHECK(idle_time(program) == 0);
  wait("");
  wait(R"(,"args":{"ctx":"0xc1"})");
  program.pause(70);
  program.launch("d", 10, "0x8");
  CHECK(idle_time(program) == 70);
  program.tid = 9;  // what is current here is not known
  wait("");
  program.pause(30);
  program.launch("e", 10, "0x8");
  CHECK(idle_time(program) == 100);
}

TEST_CASE("Each GPU has a default stream") {
  SampleProgram program;
  set_context(program, "0xc1");
  program.launch("a");
  set_context(program, "0xc2");
  program.launch("b");
  program.wait();
  program.pause(500);
  program.launch("c");
  CHECK(idle_time(program) == 0);
  program.call("context", "destroy", "cuCtxDestroy", 5, R"(,"args":{"ctx":"0xc1"})");
  program.wait();
  program.pause(40);
  program.launch("d");
  CHECK(idle_time(program) == 40);
}

TEST_CASE("A program that becomes another has left nothing pending") {
  SampleProgram program;
  program.process("start");
  program.launch("a", 10, "0x7");
  program.process("exec");
  program.launch("b", 10, "0x8");
  program.wait(10, "0x8");
  program.pause(40);
  program.launch("c", 10, "0x8");
  CHECK(idle_time(program) == 40);
}

TEST_CASE("Work in more streams than are followed is not taken to be done") {
  SampleProgram program;
  constexpr int STREAMS = 5000;
  for (int stream = 0; stream < STREAMS; stream++)
    program.launch("a", 10, fmt::format("{:#x}", 16 + stream));
  for (int stream = 0; stream < STREAMS; stream++)
    program.wait(10, fmt::format("{:#x}", 16 + stream));
  program.pause(500);
  program.launch("b", 10, "0x10");
  IdleAnswer answer = answer_of(program);
  CHECK(answer.processes[0].idle.count() == 0);
  CHECK(answer.processes[0].lost_track);
}
