#include "analyze/derived/python_places.hpp"

#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>

#include "analyze/export/folded_stacks.hpp"
#include "analyze/questions/calls.hpp"
#include "support/analyzing.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

std::string stack(int number, const std::string& frames, const std::string& more = "") {
  return fmt::format(R"({{"type":"stack","ts":1,"stack":{},"frames":[{}]{}}})", number, frames,
                     more);
}
std::string frame(const std::string& function, const std::string& file, int line) {
  return fmt::format(R"({{"function":"{}","file":"{}","line":{}}})", function, file, line);
}

const std::string IN_PACKAGE = frame("relu", "/venv/lib/python3.11/site-packages/nn/f.py", 8),
                  STEP = frame("step", "/home/me/train.py", 12),
                  MAIN = frame("<module>", "/home/me/train.py", 20);

Trace training() {
  Trace trace;
  trace.line(stack(1, IN_PACKAGE + "," + STEP + "," + MAIN));
  trace.line(stack(2, IN_PACKAGE, R"(,"cut":true)"));
  trace.call("kernel", "launch", R"("name":"cuLaunchKernel","stack":1)");
  trace.call("transfer", "HtoD", R"("name":"cuMemcpyHtoD","size":64,"stack":1)");
  trace.call("kernel", "launch", R"("name":"cuLaunchKernel","stack":2)");
  trace.call("kernel", "launch", R"("name":"cuLaunchKernel","stack":9)");
  trace.call("sync", "context", R"("name":"cuCtxSynchronize")");
  return trace;
}

std::string folded(const Trace& trace, StackMeasure weight) {
  std::string out;
  ByteStream stream([&](std::string_view bytes) {
    out += bytes;
    return true;
  });
  LineParser parser;
  FoldedStacks stacks(parser.names(), stream, weight);
  auto seen = each_line(parser, trace.text, [&](const Line& line) { stacks.line(line); });
  stacks.finish({});
  stream.flush();
  return out;
}

}  // namespace

TEST_CASE("The user's line is the innermost that is in no library") {
  LineParser parser;
  std::vector<std::string> lines;
  auto seen = each_line(parser, training().text, [&](const Line& line) {
    if (line.kind != LineKind::call) return;
    lines.emplace_back(line.python ? parser.names().text(line.python->line) : "");
  });
  CHECK(lines == std::vector<std::string>{"/home/me/train.py:12 step", "/home/me/train.py:12 step",
                                          "/venv/lib/python3.11/site-packages/nn/f.py:8 relu", "",
                                          ""});
}

TEST_CASE("Files of packages and of Python's own library") {
  for (const char* file :
       {"/usr/lib/python3/dist-packages/torch/nn.py", "/usr/lib/python3.11/threading.py",
        "/opt/py/lib64/python3.13/asyncio/events.py", "<frozen importlib._bootstrap>",
        "site-packages/torch/nn.py", "lib/python3.11/threading.py"})
    CHECK(is_of_library(file));
  for (const char* file : {"/home/me/train.py", "<string>", "<stdin>", "/home/me/mylib/python3.py",
                           "/home/me/site-packages.py"})
    CHECK_FALSE(is_of_library(file));
}

TEST_CASE("Calls by the line that made them") {
  LineParser parser;
  DerivedFields derived(parser.names());
  derived.place_by_line();
  Calls calls(parser.names(), Calls::By::range);
  auto seen = each_line(parser, training().text, [&](Line line) {
    derived.fill_in(line);
    calls.line(line);
  });
  std::string rows;
  for (const auto& group : calls.groups())
    rows += fmt::format("{} {};", group.name, group.all.count);
  CHECK(rows ==
        "(no line) 2;/home/me/train.py:12 step 2;"
        "/venv/lib/python3.11/site-packages/nn/f.py:8 relu 1;");
}

TEST_CASE("Stacks with what they weigh, from the outermost function inwards") {
  CHECK(folded(training(), StackMeasure::host) ==
        "(no line);cuCtxSynchronize 1000\n"
        "(no line);cuLaunchKernel 1000\n"
        "<module> (train.py:20);step (train.py:12);relu (f.py:8);cuLaunchKernel 1000\n"
        "<module> (train.py:20);step (train.py:12);relu (f.py:8);cuMemcpyHtoD 1000\n"
        "…;relu (f.py:8);cuLaunchKernel 1000\n");
  CHECK(folded(training(), StackMeasure::copied) ==
        "<module> (train.py:20);step (train.py:12);relu (f.py:8);cuMemcpyHtoD 64\n");
}

TEST_CASE("Folded stacks have the GPU's time under the line that asked for it") {
  Trace trace = training();
  trace.line(
      R"({"type":"gpu","op":"kernel","ts":9000,"duration_us":2.000,"pid":1,"tid":1,"call":1,"kernel":"gemm"})");
  std::string text = R"({"type":"trace","gpu_timing":"nodes"})"
                     "\n" +
                     trace.text;
  trace.text = text;
  CHECK(folded(trace, StackMeasure::gpu) ==
        "<module> (train.py:20);step (train.py:12);relu (f.py:8);gemm 2000\n");
}
