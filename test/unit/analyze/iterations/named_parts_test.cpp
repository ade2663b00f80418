#include "analyze/iterations/named_parts.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/sample_program.hpp"
#include "util/exit_codes.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

struct SampleExecution {
  SampleExecution() : execution(parser.names(), {}, 0) {
    SampleProgram program;
    program.pause(500);
    program.init(1000);
    program.alloc(50);
    program.to_device(1 << 20, 400);
    for (int i = 0; i < 6; i++) {
      starts.push_back(program.now);
      program.launch("a");
      program.launch("b");
      if (i == 0) program.load_code(5000);
      program.wait(40);
    }
    end = program.now;
    program.process("exit");
    program.show_to(parser, execution);
  }

  std::string phases_refused(const std::vector<std::string>& phases) const {
    return refusal(part_of_phases(execution, phases));
  }
  std::string iterations_refused(const std::string& iterations) const {
    return refusal(part_of_iterations(execution, iterations));
  }
  static std::string refusal(const Result<NamedPart>& part) {
    REQUIRE_FALSE(part);
    CHECK(part.error().exit_code == exit_code::USAGE);
    return part.error().message + "; " + part.error().hint;
  }

  LineParser parser;
  Execution execution;
  std::vector<std::uint64_t> starts;
  std::uint64_t end = 0;
};

}  // namespace

TEST_CASE("A phase is wanted by its name, or by the beginning of it") {
  SampleExecution sample;
  for (const char* name : {"warm-up", "WARM UP", "warmup", "Warm"}) {
    auto part = part_of_phases(sample.execution, {name});
    REQUIRE(part);
    CHECK(part->name == "warm-up");
    CHECK(part->part.from <= sample.starts[0]);
    CHECK(part->part.to == sample.starts[1]);
  }
  auto several = part_of_phases(sample.execution, {"inference", "warm", "inf"});
  REQUIRE(several);
  CHECK(several->name == "warm-up, inference");
  CHECK(several->part.to == sample.end);
}

TEST_CASE("A phase that is not in the trace is refused, and those that are in it named") {
  SampleExecution sample;
  CHECK_THAT(sample.phases_refused({"training"}),
             ContainsSubstring("no such phase; this trace has ") &&
                 ContainsSubstring("initialisation, loading, warm-up, inference"));
  CHECK_THAT(sample.phases_refused({"in"}), ContainsSubstring("initialisation or input"));
  CHECK_THAT(sample.phases_refused({"-"}), ContainsSubstring("no such phase"));
  CHECK_THAT(sample.phases_refused({"output"}), ContainsSubstring("not in this trace"));
  CHECK_THAT(sample.phases_refused({"synchronisation"}), ContainsSubstring("no stretch of time"));
  CHECK_THAT(sample.phases_refused(std::vector<std::string>{"initialisation", "inference"}),
             ContainsSubstring("something else is between"));
}

TEST_CASE("Iterations are wanted by their numbers, from 1") {
  SampleExecution sample;
  auto part = [&](const std::string& wanted) {
    auto found = part_of_iterations(sample.execution, wanted);
    REQUIRE(found);
    return *found;
  };
  CHECK(part("1").part.from == sample.starts[0]);
  CHECK(part("1").part.to == sample.starts[1]);
  CHECK(part("1").name == "iteration 1 of 6");
  CHECK(part("2-4").part.from == sample.starts[1]);
  CHECK(part("2-4").part.to == sample.starts[4]);
  CHECK(part("2-4").name == "iterations 2 to 4 of 6");
  CHECK(part("last").part.from == sample.starts[5]);
  CHECK(part("last").part.to == sample.end);
  CHECK(part("5-last").part.from == sample.starts[4]);
  CHECK(part("6-last").name == "iteration 6 of 6");
}

TEST_CASE("Iterations that are not in the trace are refused, with how many there are") {
  SampleExecution sample;
  for (const char* wanted : {"7", "1-7", "7-8"})
    CHECK_THAT(sample.iterations_refused(wanted), ContainsSubstring("6 iterations: 1 to 6"));
  for (const char* wanted :
       {"0", "", "-", "2-", "-2", "4-2", "x", "1 ", "1-2-3", "last-1", "99999999999999999999"})
    CHECK_THAT(sample.iterations_refused(wanted), ContainsSubstring("the first is 1"));
  LineParser parser;
  Execution none(parser.names(), {}, 0);
  SampleProgram program;
  program.init(10);
  program.show_to(parser, none);
  CHECK_THAT(SampleExecution::refusal(part_of_iterations(none, "1")),
             ContainsSubstring("no iterations were found"));
}
