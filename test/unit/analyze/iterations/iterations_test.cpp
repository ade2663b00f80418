#include "analyze/iterations/iterations.hpp"

#include <catch2/catch_test_macros.hpp>

#include "sample_threads.hpp"
#include "support/units.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

using Found = Iterations::Found;

Iterations iterations_of(const SampleProgram& program) {
  auto threads = threads_of(program);
  REQUIRE(!threads.empty());
  return find_iterations(threads.front());
}

}  // namespace

TEST_CASE("Iterations between waits: count, launches, times from start to start") {
  SampleProgram program;
  for (int i = 0; i < 5; i++) {
    token(program, 4);  // 15 launches, 150 ns
    program.wait(30);
    program.pause(20);
  }
  Iterations found = iterations_of(program);
  CHECK(found.found == Found::between_waits);
  CHECK(found.count == 5);
  CHECK(found.warm_up == 0);
  CHECK(found.launches == 15);
  CHECK(found.fewest == 15);
  CHECK(found.most == 15);
  CHECK(found.times.count() == 4);  // nothing comes after the last
  CHECK(found.times.total() == 800);
  CHECK(found.spent.waiting == 120);
  CHECK(found.begin == 1000);
  CHECK(found.end == 1980);
}

TEST_CASE("Smaller work between two iterations is part of the first") {
  SampleProgram program;
  for (int i = 0; i < 4; i++) {
    token(program, 4);
    program.wait();
    program.launch("sample");
    program.wait();
  }
  Iterations found = iterations_of(program);
  CHECK(found.count == 4);
  CHECK(found.launches == 16);
  CHECK(found.fewest == 15);  // the last one, whose end is not known
  CHECK(found.times.total() == 3 * 180);
}

TEST_CASE("Heavier work and pauses end a row, and are in no time") {
  SampleProgram program;
  for (int request = 0; request < 3; request++) {
    for (int i = 0; i < 40; i++) program.launch("prompt");
    program.wait();
    for (int i = 0; i < 5; i++) {
      token(program, 4);
      program.wait();
    }
    if (request == 1) program.pause(100'000);
  }
  Iterations found = iterations_of(program);
  CHECK(found.count == 15);
  CHECK(found.times.count() == 12);
  CHECK(found.times.max() == 160);
  CHECK(found.pauses == 0);  // the pause comes before heavier work

  SampleProgram server;
  for (int i = 0; i < 10; i++) {
    token(server, 4);
    server.wait();
    if (i == 4) server.pause(100'000);
  }
  found = iterations_of(server);
  CHECK(found.pauses == 1);
  CHECK(found.times.count() == 8);
  CHECK(found.times.max() == 160);
}

TEST_CASE("Iterations may differ by a twentieth of their launches, or by two") {
  SampleProgram program;
  for (int i = 0; i < 6; i++) {
    program.launch("first");
    for (int j = 0; j < 100 + i; j++) program.launch("middle");
    program.launch("last");
    program.wait();
  }
  Iterations found = iterations_of(program);
  CHECK(found.count == 6);
  CHECK(found.fewest == 102);
  CHECK(found.most == 107);
  CHECK(found.launches == 105);
}

TEST_CASE("The first ones that load code or are slow are warm-up") {
  SampleProgram program;
  for (int i = 0; i < 8; i++) {
    token(program, 4);
    if (i == 0) program.load_code(5000);
    if (i == 1) program.pause(200);
    if (i == 5) program.pause(200);  // slow, but not at the beginning
    program.wait();
  }
  Iterations found = iterations_of(program);
  CHECK(found.count == 8);
  CHECK(found.warm_up == 2);
  CHECK(found.times.count() == 5);
  CHECK(found.times.max() == 360);
}

TEST_CASE("Iterations without a wait are the row of kernels that the end repeats, not its layers") {
  SampleProgram program;
  program.launch("prepare");
  for (int i = 0; i < 6; i++) token(program, 12);  // 39 launches
  program.launch("sum");
  program.wait();
  Iterations found = iterations_of(program);
  CHECK(found.found == Found::within_a_wait);
  CHECK(found.count == 6);
  CHECK(found.launches == 39);
  CHECK(found.times.count() == 5);
  CHECK(found.times.quantile(0.5) == 390);
}

TEST_CASE("Iterations without a wait may grow with their sequence") {
  SampleProgram program;
  for (int i = 0; i < 9; i++) token(program, i < 4 ? 10 : 12);
  program.wait();
  Iterations found = iterations_of(program);
  CHECK(found.found == Found::within_a_wait);
  CHECK(found.count == 9);
  CHECK(found.fewest == 33);
  CHECK(found.most == 39);
}

TEST_CASE("The layers of one token, and one kernel over and over, are no iterations") {
  SampleProgram one_token;
  token(one_token, 48);
  one_token.wait();
  CHECK(iterations_of(one_token).found == Found::none);
  SampleProgram storm;
  for (int i = 0; i < 1000; i++) storm.launch("storm");
  CHECK(iterations_of(storm).found == Found::none);
  SampleProgram two;
  for (int i = 0; i < 2; i++) {
    token(two, 4);
    two.wait();
  }
  CHECK(iterations_of(two).found == Found::none);
  SampleProgram nothing;
  nothing.init(100);
  CHECK(iterations_of(nothing).found == Found::none);
}

TEST_CASE("What is recorded into a graph is launched with the graph, not before") {
  SampleProgram program;
  program.capturing = true;
  token(program, 48);
  program.capturing = false;
  for (int i = 0; i < 5; i++) {
    program.call("graph", "launch", "cuGraphLaunch", 10, R"(,"stream":"0x0","async":true)");
    program.wait();
  }
  Iterations found = iterations_of(program);
  CHECK(found.found == Found::between_waits);
  CHECK(found.count == 5);
  CHECK(found.launches == 1);
  CHECK(found.kernels == 0);  // the trace does not say
}

TEST_CASE("An iteration runs the kernels that it launches, and those of its graphs") {
  SampleProgram program;
  program.graph_content(1, 20, "k");
  for (int i = 0; i < 5; i++) {
    program.launch_graph(R"("graph":1)");
    program.launch("sample");
    program.wait();
  }
  Iterations found = iterations_of(program);
  CHECK(found.count == 5);
  CHECK(found.launches == 2);
  CHECK(found.kernels == 21);
}

TEST_CASE("A graph of several kernels is an iteration, where another thread does the waiting") {
  auto found_with = [](int others, int kernels) {
    SampleProgram program;
    program.graph_content(1, kernels, "k");
    for (int i = 0; i < others; i++) program.launch("prepare");
    for (int i = 0; i < 30; i++) program.launch_graph(R"("graph":1)");
    return iterations_of(program);
  };
  Iterations found = found_with(2, 9);
  CHECK(found.found == Found::within_a_wait);
  CHECK(found.count == 30);
  CHECK(found.launches == 1);
  CHECK(found.kernels == 9);
  CHECK(found_with(2, 1).found == Found::none);
  CHECK(found_with(4, 9).found == Found::none);  // these may be part of what repeats
}

TEST_CASE("The thread that launches most is kept of each process, and a process ends its threads") {
  SampleProgram program;
  program.process("fork");
  for (int i = 0; i < 4; i++) {
    program.tid = 7;
    token(program, 2);
    program.tid = 8;
    program.launch("other");
    program.tid = 7;
    program.wait();
  }
  program.process("exit");
  program.process("fork");  // the pid is reused
  program.launch("later");
  auto threads = threads_of(program);
  REQUIRE(threads.size() == 2);
  CHECK(threads[0].tid == 7);
  CHECK(threads[0].launches == 36);
  CHECK(threads[0].process_began == 1000);
  CHECK(threads[0].process_ended > 0);
  CHECK(find_iterations(threads[0]).count == 4);
  CHECK(threads[1].tid == 7);
  CHECK(threads[1].launches == 1);
  CHECK(threads[1].process_ended == 0);
  CHECK(threads[1].process_began == threads[0].process_ended);
}

TEST_CASE("The segment that launches most is looked at, however many of it are kept") {
  SampleProgram program;
  for (int i = 0; i < 20'000; i++) program.launch(i % 5000 ? "a" : "b");
  program.wait();
  for (int i = 0; i < 5'500; i++) token(program, 3);  // 66,000: the first of them are let go
  program.wait();
  Iterations found = iterations_of(program);
  CHECK(found.found == Found::within_a_wait);
  CHECK(found.launches == 12);
}

TEST_CASE("What ends a row is heavier than an iteration, not than all that was between") {
  SampleProgram program;
  for (int i = 0; i < 4; i++) {
    for (auto kernel : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"})
      program.launch(kernel);
    program.wait();
    for (int j = 0; j < 3; j++) {
      for (auto kernel : {"x", "y", "z"}) program.launch(kernel);
      program.wait();
    }
    for (int j = 0; i == 1 && j < 14; j++) program.launch("other");
    if (i == 1) program.wait();
  }
  Iterations found = iterations_of(program);
  CHECK(found.count == 4);
  CHECK(found.most == 21);
  CHECK(found.times.count() == 2);
}

TEST_CASE("A class does not grow from neighbour to neighbour") {
  SampleProgram program;
  for (int launches = 2; launches < 60; launches += 2) {
    program.launch("first");
    for (int i = 2; i < launches; i++) program.launch("middle");
    program.launch("last");
    program.wait();
  }
  CHECK(iterations_of(program).found == Found::none);
}

TEST_CASE("A fork of a known pid is another process, though its exit was not seen") {
  SampleProgram program;
  program.process("fork");
  program.launch("a");
  program.pause(1000);
  program.process("fork");
  program.launch("b");
  auto threads = threads_of(program);
  REQUIRE(threads.size() == 2);
  CHECK(threads[0].launches == 1);
  CHECK(threads[1].launches == 1);
}

TEST_CASE("How long the GPU was idle is known of any part of the time") {
  SampleProgram program;
  program.launch("prepare");
  program.wait();
  program.pause(70'000);  // before the iterations
  for (int i = 0; i < 5; i++) {
    token(program, 4);
    program.wait(30);
    program.pause(20);
  }
  program.pause(9'000);
  program.launch("after");
  LineParser parser;
  Idle idle(parser.names(), 0);
  ThreadsAtWork threads({}, idle);
  each_line(parser, program.text(), [&](const Line& line) {
    idle.line(line);
    threads.line(line);
  });
  threads.finish({});
  Iterations found = find_iterations(threads.threads().front());
  CHECK(found.count == 5);
  CHECK(found.end - found.warm == 4 * 200 + 180);
  CHECK((found.at_end - found.at_warm).idle == 4 * 20);
  CHECK(found.at_warm.idle == 70'000);
}

TEST_CASE("The busiest threads and processes are listed one by one, and others as sums") {
  SampleProgram program;
  constexpr std::uint32_t PROCESSES = 1100;
  for (std::uint32_t pid = 1; pid <= PROCESSES; pid++) {
    program.pid = program.tid = pid;
    program.process("fork");
    program.launch("a");
    if (pid % 2) program.launch("b");
    if (pid % 3 == 0) program.process("exit");
  }
  LineParser parser;
  Idle idle(parser.names(), 0);
  ThreadsAtWork threads({}, idle);
  program.show_to(parser, threads);
  CHECK(threads.threads().size() == 16);
  CHECK(threads.threads().front().launches == 2);
  REQUIRE(threads.processes().size() == 1024);
  CHECK(threads.processes()[549].launches == 2);
  CHECK(threads.processes()[550].launches == 1);
  CHECK(parser.names().text(threads.processes()[0].comm) == "sample");
  CHECK(threads.other_processes() == 76);
  CHECK(threads.others().launches == 76);
  CHECK(threads.others().threads == 76);

  ThreadsAtWork of_one({1000}, idle);
  program.show_to(parser, of_one);
  REQUIRE(of_one.threads().size() == 1);
  CHECK(of_one.threads().front().pid == 1000);
  CHECK(of_one.processes().size() == 1024);
}

TEST_CASE("The thread that launches most is that with most kernels, in graphs, too") {
  SampleProgram program;
  for (int i = 0; i < 8; i++) program.launch("a");
  program.tid = 9;
  program.graph_content(1, 3, "k");
  for (int i = 0; i < 3; i++) program.launch_graph(R"("graph":1)");
  LineParser parser;
  Idle idle(parser.names(), 0);
  ThreadsAtWork threads({}, idle);
  program.show_to(parser, threads);
  CHECK(threads.threads().front().tid == 9);
  CHECK(threads.launches() == 11);

  ThreadsAtWork of_one({0, 55}, idle);
  program.show_to(parser, of_one);
  CHECK(of_one.threads().empty());
  ThreadsAtWork of_thread({program.pid, 9}, idle);
  program.show_to(parser, of_thread);
  REQUIRE(of_thread.threads().size() == 1);
  CHECK(of_thread.threads().front().launches == 3);
}

TEST_CASE("Threads that were quiet for longest give way") {
  SampleProgram program;
  constexpr std::uint32_t THREADS = (1 << 14) + 1;
  for (program.tid = 1; program.tid <= THREADS; program.tid++) program.launch("a");
  LineParser parser;
  Idle idle(parser.names(), 0);
  ThreadsAtWork threads({}, idle);
  program.show_to(parser, threads);
  CHECK(threads.put_away() == (1 << 13) + 1);
  REQUIRE(threads.processes().size() == 1);
  CHECK(threads.processes()[0].threads == THREADS);
  CHECK(threads.processes()[0].launches == THREADS);
}

TEST_CASE("The last of iterations in a row has its last launch") {
  SampleProgram program;
  program.graph_content(1, 20, "g");
  for (int i = 0; i < 6; i++) {
    program.launch("a", 10 * US);
    program.pause(40 * US);
    program.launch_graph(R"("graph":1)", 30 * US);
    if (i < 5) program.pause(20 * US);
  }
  std::uint64_t issued_by = program.now;
  program.pause(5 * MS);
  SECTION("before another kernel") { program.launch("sum"); }
  SECTION("before other work") { program.load_code(20 * MS); }
  program.wait(100 * US);
  Iterations found = iterations_of(program);
  REQUIRE(found.found == Found::within_a_wait);
  CHECK(found.count == 6);
  CHECK(found.end == issued_by);
  CHECK((found.at_end - found.at_begin).kernels == 6 * 21);
}
