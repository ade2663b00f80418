#include "analyze/stacks/stack_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "analyze/derived/derived_fields.hpp"
#include "support/analyzing.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

Json stacks_of(const Trace& trace) {
  LineParser parser;
  DerivedFields derived(parser.names());
  StackWeights weights(parser.names());
  auto seen = each_line(parser, trace.text, [&](Line line) {
    derived.fill_in(line);
    weights.line(line);
  });
  weights.finish({});
  return stacks_json(weights, parser.names());
}

std::string inner_and_main(int number, std::string_view inner) {
  return fmt::format(
      R"({{"type":"stack","ts":1,"stack":{},"frames":[{{"function":"{}","file":"/venv/lib/python3.11/site-packages/nn.py","line":8}},{{"function":"main","file":"/home/me/train.py","line":20}}]}})",
      number, inner);
}

// "main 0 2000; relu 1 1000; …": each node's text, kind and weight, below those around it.
std::string drawn(const Json& stacks, const char* measure) {
  const Json& tree = stacks["trees"][measure];
  std::string text;
  for (std::size_t i = 0; i < tree["parents"].size(); i++) {
    std::size_t number = tree["texts"][i];
    text += fmt::format("{}<{} {} {};", i, tree["parents"][i].get<int>(),
                        stacks["texts"][number].get<std::string>(), tree["weights"][i].get<int>());
    CHECK(tree["parents"][i].get<int>() < static_cast<int>(i));
  }
  return text;
}

}  // namespace

TEST_CASE("A tree of stacks has equal frames once, and the sums of what is below them") {
  Trace trace;
  trace.line(inner_and_main(1, "relu"));
  trace.line(inner_and_main(2, "gelu"));
  trace.call("kernel", "launch", R"("name":"cuLaunchKernel","stack":1)");
  trace.call("kernel", "launch", R"("name":"cuLaunchKernel","stack":1)");
  trace.call("kernel", "launch", R"("name":"cuLaunchKernel","stack":2)");
  trace.call("sync", "context", R"("name":"cuCtxSynchronize")");
  Json stacks = stacks_of(trace);
  CHECK(drawn(stacks, "host") ==
        "0<-1 /home/me/train.py:20 main 3000;"
        "1<0 /venv/lib/python3.11/site-packages/nn.py:8 relu 2000;2<1 cuLaunchKernel 2000;"
        "3<-1 (no line) 1000;4<3 cuCtxSynchronize 1000;"
        "5<0 /venv/lib/python3.11/site-packages/nn.py:8 gelu 1000;6<5 cuLaunchKernel 1000;");
  CHECK(drawn(stacks, "gpu").empty());
  CHECK(stacks["kinds"].dump() == "[0,1,2,1,2,1]");
  CHECK(
      stacks["lines"].dump() ==
      R"x([{"line":"(no line)","host_us":1.0},{"line":"/home/me/train.py:20 main","host_us":3.0}])x");
}

TEST_CASE("Allocations weigh what they gave, those that failed nothing") {
  Trace trace;
  trace.line(inner_and_main(1, "empty"));
  trace.call("memory", "alloc", R"("name":"cuMemAlloc","ptr":"0x1000","size":512,"stack":1)");
  trace.call(
      "memory", "alloc",
      R"("name":"cuMemAlloc","ret":2,"error":"CUDA_ERROR_OUT_OF_MEMORY","size":64,"stack":1)");
  Json stacks = stacks_of(trace);
  CHECK(stacks["trees"]["allocated"]["weights"].dump() == "[512,512,512]");
}

TEST_CASE("A tree of too many stacks leaves out the lightest, and says how much that is") {
  Trace trace;
  constexpr int STACKS = 10'000;
  for (int i = 0; i < STACKS; i++) {
    trace.line(inner_and_main(i, fmt::format("f{}", i)));
    trace.call("transfer", "HtoD",
               fmt::format(R"("name":"cuMemcpyHtoD","size":{},"stack":{})", i + 1, i));
  }
  Json tree = stacks_of(trace)["trees"]["bytes"];
  CHECK(tree["parents"].size() < STACKS);
  std::uint64_t in_tree = 0, lightest = STACKS;
  for (std::size_t i = 0; i < tree["parents"].size(); i++) {
    if (tree["parents"][i] == -1) in_tree += tree["weights"][i].get<std::uint64_t>();
    lightest = std::min(lightest, tree["weights"][i].get<std::uint64_t>());
  }
  std::uint64_t left_out = tree["left_out"];
  CHECK(in_tree + left_out == std::uint64_t{STACKS} * (STACKS + 1) / 2);
  CHECK(left_out == (lightest - 1) * lightest / 2);
}

TEST_CASE("A trace without stacks has no tree") {
  Trace trace;
  trace.call("sync", "context", R"("name":"cuCtxSynchronize")");
  CHECK(stacks_of(trace).is_null());
}
