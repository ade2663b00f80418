#include "analyze/iterations/execution.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/sample_program.hpp"

using namespace cudabpf::analyze;

TEST_CASE("What was idle is the busiest thread's process's, also where its pid was used before") {
  SampleProgram program;
  program.process("start");
  program.launch("a");
  program.wait();
  program.pause(500);
  program.launch("a");
  program.wait();
  program.process("exit");
  program.process("start");
  program.launch("b");
  program.wait();
  program.pause(100);
  program.launch("b");
  program.launch("b");
  program.wait();
  program.process("exit");

  LineParser parser;
  Execution execution(parser.names(), {}, 0);
  program.show_to(parser, execution);
  REQUIRE(execution.thread());
  CHECK(execution.thread()->launches == 3);
  REQUIRE(execution.idle().processes().size() == 2);
  CHECK(execution.idle().processes().front().idle.total() == 500);
  REQUIRE(execution.process());
  CHECK(execution.process()->idle.total() == 100);
}

TEST_CASE("A trace without calls has no phases or iterations") {
  LineParser parser;
  Execution execution(parser.names(), {}, 0);
  SampleProgram().show_to(parser, execution);
  CHECK_FALSE(execution.thread());
  CHECK_FALSE(execution.process());
  CHECK(execution.iterations().found == Iterations::Found::none);
}
