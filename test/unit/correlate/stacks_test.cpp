#include <catch2/catch_test_macros.hpp>

#include "correlate/correlating.hpp"
#include "trace/write/stack_lines.hpp"

using namespace cudabpf;

namespace {

struct SampleFrame {
  std::string_view function, file;
  std::uint32_t line;
};

// A program that says where its calls are made.
struct Python : Correlating {
  using Correlating::Correlating;

  samples::Head head() { return {.ts = time += 1000, .pid = pid, .tid = pid, .drops = drops}; }

  void describe(std::uint64_t number, const std::vector<SampleFrame>& frames, bool cut = false) {
    auto bytes = samples::with_head(head(), abi::CB_STACK, sizeof(abi::cb_stack));
    std::string described;
    for (const SampleFrame& frame : frames) {
      abi::cb_stack_frame said{frame.line, static_cast<std::uint16_t>(frame.function.size()),
                               static_cast<std::uint16_t>(frame.file.size())};
      described.append(reinterpret_cast<const char*>(&said), sizeof(said));
      described.append(frame.function).append(frame.file);
      described.resize((described.size() + 7) & ~std::size_t{7});
    }
    auto& record = bytes.as<abi::cb_stack>();
    record.number = number;
    record.size = static_cast<std::uint32_t>(described.size());
    record.frames = static_cast<std::uint16_t>(frames.size());
    record.cut = cut;
    bytes.append(described.data(), described.size());
    feed(bytes);
  }
  samples::RecordBytes entry(std::uint64_t number) {
    auto bytes = samples::entry(head(), "cuInit", {0});
    if (!number) return bytes;
    bytes.head().flags |= abi::CB_STACK_KNOWN;
    bytes.append(&number, sizeof(number));
    return bytes;
  }
  void returns() { feed(samples::returned(head(), "cuInit")); }
  // Where a call is made whose record has this number: "inner:3 outer:7".
  std::string with(std::uint64_t number) {
    feed(entry(number));
    returns();
    return lines();
  }
  // The same of a call that the kernel reports.
  std::string apart(std::uint64_t number, std::uint32_t further = 0) {
    feed(entry(0));
    drops += further;
    auto bytes = samples::with_head(head(), abi::CB_CALL_STACK, sizeof(abi::cb_call_stack));
    bytes.as<abi::cb_call_stack>().number = number;
    feed(bytes);
    returns();
    return lines();
  }
  std::string lines() const {
    std::string all;
    for (const PythonFrame& frame : last().own_stack.frames)
      all += (all.empty() ? "" : " ") + frame.function->name + ":" + std::to_string(frame.line);
    return all;
  }
  std::uint64_t missed() const { return correlator.stacks_missed(); }

  std::uint64_t time = 1000;
  std::uint32_t pid = 100, drops = 0;
};

constexpr std::uint64_t ONE = CB_STACK_PLACES + 5, OTHER = CB_STACK_PLACES * 2 + 6;
const std::vector<SampleFrame> STEP = {{"step", "a.py", 3}, {"main", "a.py", 9}},
                               LOAD = {{"load", "b.py", 4}};

}  // namespace

TEST_CASE("A call has the stack whose number is in its record") {
  Python program;
  program.describe(ONE, STEP);
  program.describe(OTHER, LOAD);
  CHECK(program.with(ONE) == "step:3 main:9");
  CHECK(program.with(OTHER) == "load:4");
  CHECK(program.with(0).empty());
  CHECK(program.missed() == 0);
}

TEST_CASE("A call that the kernel reports has the stack that comes while it begins") {
  Python program;
  program.describe(ONE, STEP);
  CHECK(program.apart(ONE) == "step:3 main:9");
  CHECK(program.missed() == 0);
  SECTION("unless something was lost in between") {
    CHECK(program.apart(ONE, 1).empty());
    CHECK(program.missed() == 1);
  }
}

TEST_CASE("Equal stacks have one number in the trace, whichever process describes them") {
  Python program;
  program.describe(ONE, STEP);
  program.with(ONE);
  auto number = program.last().own_stack.number;
  program.pid = 200;
  program.describe(OTHER, STEP);
  CHECK(program.with(OTHER) == "step:3 main:9");
  CHECK(program.last().own_stack.number == number);
  program.describe(ONE, STEP, true);
  program.with(ONE);
  CHECK(program.last().own_stack.number != number);
}

TEST_CASE("A number of another process, or one that was not described, gives no stack") {
  Python program;
  program.describe(ONE, STEP);
  program.pid = 200;
  CHECK(program.with(ONE).empty());
  program.pid = 100;
  CHECK(program.with(OTHER).empty());
  CHECK(program.with(ONE + CB_STACK_PLACES).empty());  // the same place
  CHECK(program.missed() == 3);
}

TEST_CASE("A stack whose place another has taken is known a little longer") {
  Python program;
  program.describe(ONE, STEP);
  program.describe(ONE + CB_STACK_PLACES, LOAD);
  CHECK(program.with(ONE + CB_STACK_PLACES) == "load:4");
  CHECK(program.with(ONE) == "step:3 main:9");
  program.describe(ONE + 2 * CB_STACK_PLACES, LOAD);
  CHECK(program.with(ONE).empty());
  CHECK(program.missed() == 1);
}

TEST_CASE("What another program of the process said is forgotten") {
  Python program;
  program.describe(ONE, STEP);
  program.feed(samples::process(program.head(), abi::CB_EXEC));
  CHECK(program.with(ONE).empty());
}

TEST_CASE("Where there is no room for stacks, that is counted") {
  Correlator::Options options;
  options.limits.of(Kept::stacks) = 2;
  Python program(std::move(options));
  for (std::uint64_t i = 0; i < 4; i++)
    program.describe(ONE + i, {{"f", "a.py", static_cast<std::uint32_t>(i + 1)}});
  CHECK(program.with(ONE) == "f:1");
  CHECK(program.with(ONE + 3).empty());
  CHECK(program.correlator.bounds().all_left_out(Kept::stacks) > 0);
}

TEST_CASE("Malformed descriptions are no records") {
  Python program;
  program.describe(ONE, STEP);
  auto bytes = samples::with_head(program.head(), abi::CB_STACK, sizeof(abi::cb_stack));
  auto& record = bytes.as<abi::cb_stack>();
  CHECK(bytes.parse());
  record.frames = 1;
  CHECK_FALSE(bytes.parse());
  record.size = 8;
  CHECK_FALSE(bytes.parse());
  abi::cb_stack_frame frame{1, 5, 5};
  bytes.append(&frame, sizeof(frame));
  CHECK_FALSE(bytes.parse());
}

TEST_CASE("The line of a stack") {
  PythonStack stack;
  stack.number = 7;
  auto function = std::make_shared<PythonFunction>(PythonFunction{"C.f", "/a \"b\".py"});
  stack.frames = {{function, 3}, {function, 0}};
  stack.cut = true;
  CHECK(
      stack_line(stack, 5) ==
      R"({"type":"stack","ts":5,"stack":7,"frames":[{"function":"C.f","file":"/a \"b\".py","line":3},)"
      R"({"function":"C.f","file":"/a \"b\".py","line":null}],"cut":true})"
      "\n");
  CHECK(python_line({5, 100, "3.11.2", {}}) ==
        R"({"type":"python","ts":5,"pid":100,"version":"3.11.2"})"
        "\n");
  CHECK(python_line({5, 100, {}, "Python 3.9.2: its version is older than 3.11"}) ==
        R"({"type":"python","ts":5,"pid":100,"why":"Python 3.9.2: its version is older than 3.11"})"
        "\n");
}
