#include "analyze/derived/issuing_calls.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <string>
#include <vector>

#include "support/gpu_operation_lines.hpp"
#include "support/graph_lines.hpp"
#include "support/sample_program.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

// The calls that issued what GPUs did, in the order of these lines; id 0: it is not known.
std::vector<IssuingCall> issuers(const std::string& text) {
  std::vector<IssuingCall> issuers;
  LineParser parser;
  auto seen = each_line(parser, text, [&](const Line& line) {
    if (line.kind == LineKind::gpu_operation)
      issuers.push_back(line.issuer ? *line.issuer : IssuingCall{});
    else
      CHECK_FALSE(line.issuer);
  });
  return issuers;
}

}  // namespace

TEST_CASE("A line of what a GPU did knows the call that issued it") {
  auto of = issuers(MEASURED + kernel_launch(3, 1000, "k") + graph_launch(4, 5000, of_graph(9)) +
                    gpu_kernel(9000, 5, "k", of_call(4)) + gpu_kernel(7000, 5, "k", of_call(3)) +
                    gpu_kernel(500, 5, "k", of_call(3)) + gpu_kernel(1, 5, "k", of_call(5)) +
                    gpu_kernel(1, 5, "k", ""));
  REQUIRE(of.size() == 5);
  CHECK(of[0].id == 4);
  CHECK(of[0].graph == 9);
  CHECK(of[0].node == NodeWork::graph);
  CHECK(of[1].id == 3);
  CHECK(of[1].process == 1);
  CHECK(of[1].tid == 1);
  CHECK(of[1].ts == 1000);
  CHECK(of[1].end == 2000);
  CHECK(of[1].timed);
  CHECK(of[1].is_async);
  CHECK(of[1].node == NodeWork::kernel);
  CHECK(of[1].block == Dimensions{32, 1, 1});
  CHECK(of[1].queued_until(7000) == 6000);
  CHECK(of[2].queued_until(500) == 0);  // both clocks have their error
  CHECK(of[3].id == 0);
  CHECK(of[4].id == 0);
}

TEST_CASE("A call that failed has issued nothing, nor has one where nothing is measured") {
  CHECK(issuers(MEASURED + kernel_launch(3, 1000, "k", "", 1) + gpu_kernel(9, 5, "k", of_call(3)))
            .front()
            .id == 0);
  CHECK(issuers(kernel_launch(3, 1000, "k") + gpu_kernel(9, 5, "k", of_call(3))).front().id == 0);
}

TEST_CASE("A call whose stream waits for an event depends on what came before that") {
  SampleProgram program;
  program.line(R"({"type":"trace","gpu_timing":"nodes"})");
  auto event = [&](std::string_view type, std::string_view op, std::string_view stream) {
    program.call(type, op, "cu", 10,
                 fmt::format(R"(,"stream":"{}","args":{{"hEvent":"0x5"}})", stream));
  };
  program.launch("a", 10, "0x7");
  event("event", "record", "0x7");
  event("stream", "wait_event", "0x8");
  program.launch("b", 10, "0x8");
  program.launch("c", 10, "0x8");
  std::string text = program.text();
  for (int call : {1, 4, 5}) text += gpu_kernel(5000, 5, "k", of_call(call));
  auto of = issuers(text);
  REQUIRE(of.size() == 3);
  CHECK_FALSE(of[0].has_to_wait);
  CHECK(of[1].has_to_wait);
  CHECK(of[1].depends == 1);
  CHECK_FALSE(of[2].has_to_wait);
}

TEST_CASE("Among the calls that are kept by their ids, only the oldest gives way") {
  struct Call {
    std::uint64_t id = 0;
  };
  constexpr std::size_t MAX = 1 << 12;
  CallsById<Call> calls(MAX);
  for (std::uint64_t id = 1; id <= 3000; id++) CHECK(calls.add({id}).id == 0);
  CHECK(calls.find(3000));
  CHECK(calls.find(1));
  CHECK_FALSE(calls.find(3001));
  CHECK_FALSE(calls.find(0));
  CHECK(calls.add({MAX + 1}).id == 1);
  CHECK_FALSE(calls.find(1));
  CHECK(calls.find(2));
  CHECK(calls.add({2}).id == 2);
  CHECK(calls.add({std::numeric_limits<std::uint64_t>::max()}).id == 0);
  std::size_t count = 0;
  calls.each([&](const Call&) { count++; });
  CHECK(count == 3001);
}
