#include "analyze/course/course.hpp"

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
  Course course(parser.names(), {}, 0);
  program.show_to(parser, course);
  REQUIRE(course.thread());
  CHECK(course.thread()->launches == 3);
  REQUIRE(course.idle().processes().size() == 2);
  CHECK(course.idle().processes().front().idle.total() == 500);
  REQUIRE(course.process());
  CHECK(course.process()->idle.total() == 100);
}

TEST_CASE("A trace without calls has no course") {
  LineParser parser;
  Course course(parser.names(), {}, 0);
  SampleProgram().show_to(parser, course);
  CHECK_FALSE(course.thread());
  CHECK_FALSE(course.process());
  CHECK(course.iterations().found == Iterations::Found::none);
}
