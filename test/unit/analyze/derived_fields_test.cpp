#include "analyze/derived/derived_fields.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "support/sample_program.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

// The streams that launches are on.
std::vector<StreamKey> streams(const SampleProgram& program) {
  std::vector<StreamKey> streams;
  LineParser parser;
  Name launch = parser.names().add("launch");
  each_line(parser, program.text(), [&](const Line& line) {
    if (line.op == launch) streams.push_back(stream_of(line));
  });
  return streams;
}

void set_context(SampleProgram& program, std::string_view context) {
  program.call("context", "set_current", "cuCtxSetCurrent", 5,
               fmt::format(R"(,"args":{{"ctx":"{}"}})", context));
}

void launch_of_thread(SampleProgram& program, std::string_view stream) {
  program.call("kernel", "launch", "cuLaunchKernel", 5,
               fmt::format(R"(,"symbol":"cuLaunchKernel_ptsz","stream":"{}")", stream));
}

}  // namespace

TEST_CASE("The default stream has two names, and one of each thread's own may have three") {
  SampleProgram program;
  program.launch("a", 10, "0x0");
  program.launch("b", 10, "0x1");
  program.launch("c", 10, "0x2");
  launch_of_thread(program, "0x0");
  program.tid = 9;
  program.launch("d", 10, "0x2");
  program.launch("e", 10, "0x7");
  program.pid = 8;
  program.launch("f", 10, "0x7");
  auto of = streams(program);
  REQUIRE(of.size() == 7);
  CHECK(of[0] == of[1]);
  CHECK(of[1] != of[2]);
  CHECK(of[2] == of[3]);
  CHECK(of[3] != of[4]);
  CHECK(of[5].handle == of[6].handle);
  CHECK(of[5] != of[6]);
}

TEST_CASE("Each context has a default stream, and other streams only one name") {
  SampleProgram program;
  for (std::string_view context : {"0xc1", "0xc2", "0xc1"}) {
    set_context(program, context);
    program.launch("a");
    program.launch("b", 10, "0x7");
  }
  auto of = streams(program);
  REQUIRE(of.size() == 6);
  CHECK(of[0] != of[2]);
  CHECK(of[0] == of[4]);
  CHECK(of[1] == of[3]);
}

TEST_CASE("Current contexts are known of a bounded number of threads, and then of the next ones") {
  constexpr std::uint32_t THREADS = (1 << 15) + 1;
  std::string text;
  auto on_thread = [&](std::uint32_t tid, std::string_view name, std::string_view args) {
    text += fmt::format(
        R"({{"id":1,"type":"context","name":"{}","ts":1,"pid":7,"tid":{},"ret":0,"args":{{{}}}}})"
        "\n",
        name, tid, args);
  };
  for (std::uint32_t tid = 1; tid <= THREADS; tid++)
    on_thread(tid, "cuCtxSetCurrent", fmt::format(R"("ctx":"{:#x}")", tid));
  for (std::uint32_t tid : {THREADS, 1U}) on_thread(tid, "cuCtxSynchronize", "");
  std::vector<std::uint64_t> contexts;
  LineParser parser;
  Name wait = parser.names().add("cuCtxSynchronize");
  each_line(parser, text, [&](const Line& line) {
    if (line.name == wait) contexts.push_back(line.context);
  });
  CHECK(contexts == std::vector<std::uint64_t>{THREADS, 0});
}

TEST_CASE("Work that is captured is recorded into a graph, and not done") {
  SampleProgram program;
  program.launch("a");
  program.capturing = true;
  program.launch("b");
  LineParser parser;
  std::vector<Work> kinds;
  each_line(parser, program.text(), [&](const Line& line) { kinds.push_back(line.work); });
  CHECK(kinds == std::vector{Work::launch, Work::recorded});
}
