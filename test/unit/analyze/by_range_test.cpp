// Figures that are kept apart by the program's own ranges.
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "analyze/energy/gaps_answer.hpp"
#include "analyze/iterations/execution.hpp"
#include "analyze/memory/memory.hpp"
#include "analyze/questions/calls.hpp"
#include "analyze/questions/kernels.hpp"
#include "support/graph_lines.hpp"
#include "support/range_lines.hpp"
#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

constexpr const char* WITH_GPU_TIMES = R"(,"gpu_timing":"nodes","ranges":true)";

std::string allocation(const std::string& op, int id, int number, const std::string& at, int size) {
  return fmt::format(
      R"({{"id":{},"type":"memory","op":"{}","name":"cuMem{}","ts":{},"duration_us":1.000,"pid":7,"tid":7,"ret":0{},"size":{},"ptr":"{}","kind":"device"}})"
      "\n",
      id, op, op == "alloc" ? "Alloc" : "Free", 1000 * id,
      number ? fmt::format(R"(,"range":{})", number) : "", size, at);
}

// A launch of graph 1, which holds two kernels.
std::string graph_in(int id, int number) {
  std::string line = graph_launch(id, 100 * id, of_graph(1, 2, 2));
  return line.insert(line.rfind('}'), fmt::format(R"(,"range":{})", number));
}

}  // namespace

TEST_CASE("Kernels by range: those of a graph are in the range of its launch") {
  TraceText trace(named(1, "prefill") + named(2, "decode") + named(3, "layer", 2) +
                      content_line(1, 2, 2, kernel_nodes("gemm(int)", "2")) + launched_in(1, 1) +
                      graph_in(2, 3) + graph_in(3, 3) + graph_in(4, 1) + launched_in(5, 0),
                  R"(,"ranges":true)");
  Kernels kernels(trace.names(), Kernels::By::range);
  trace.show(kernels);
  std::string found;
  for (const auto& group : kernels.groups()) {
    found += group.name + ":";
    for (const auto& kernel : group.kernels)
      found += fmt::format(" {} {}", kernel.name, kernel.runs());
    found += fmt::format(" = {}\n", group.all.runs());
  }
  CHECK(found ==
        "decode / layer: gemm 4 = 4\n"
        "prefill: gemm 2 k 1 = 3\n"
        "(no range): k 1 = 1\n");
  Json json = kernels_json(kernels, Kernels::By::range);
  CHECK(json["kernels"][0]["group"] == "decode / layer");
  CHECK(json["kernels"][1]["kernels"].size() == 2);
  CHECK(json["launches"]["runs"] == 8);
}

TEST_CASE("A GPU's times of kernels are by the range of the launch") {
  TraceText trace(named(1, "a") + named(2, "b") + launched_in(1, 1) + launched_in(2, 2) +
                      worked(2, 30) + worked(1, 5),
                  WITH_GPU_TIMES);
  Kernels kernels(trace.names(), Kernels::By::range);
  trace.show(kernels);
  auto groups = kernels.groups();
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].name == "b");
  CHECK(groups[0].all.gpu.times.total() == 30'000);
  CHECK(groups[1].all.gpu.times.total() == 5'000);
}

TEST_CASE("Steps that are many are one group, as `ranges` shows them") {
  std::string lines = named(1, "run");
  for (int i = 0; i < 40; i++)
    lines += named(10 + i, fmt::format("step {}", i), 1) + launched_in(i + 1, 10 + i);
  TraceText trace(lines);
  Calls calls(trace.names(), Calls::By::range);
  trace.show(calls);
  auto groups = calls.groups();
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].name == "run / step #");
  CHECK(groups[0].all.count == 40);
  REQUIRE(groups[0].functions.size() == 1);
  CHECK(groups[0].functions[0].count == 40);
}

TEST_CASE("Idle times by the range of the call that ended them") {
  // The GPU works from 1 to 6 µs, from 20 to 30, and from 40.
  TraceText trace(named(1, "a") + named(2, "b") + launched_in(1, 1) + worked(1, 5) +
                      launched_in(20, 2) + worked(20, 10) + launched_in(40, 2) + worked(40, 1),
                  WITH_GPU_TIMES);
  Execution execution(trace.names(), {}, 5);
  trace.show(execution);
  auto any = [](std::uint64_t) { return true; };
  auto rows = execution.gpus().idle_by_range().rows(trace.names(), any);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].name == "b");
  CHECK(rows[0].gaps == 2);
  SampledGpus none;
  Json json = gaps_json(execution.idle(), execution.gpus(), none, GapsBy::range);
  CHECK(json["measured"]["idle_by_range"][0]["range"] == "b");
  CHECK(json["measured"]["idle_by_range"][0]["gaps"] == 2);
}

TEST_CASE("Memory by the range that allocated it, whoever frees it") {
  TraceText trace(named(1, "load") + named(2, "cache") + allocation("alloc", 1, 1, "0x10", 100) +
                  allocation("alloc", 2, 2, "0x20", 300) + allocation("free", 3, 2, "0x10", 0) +
                  allocation("alloc", 4, 1, "0x30", 50) + allocation("alloc", 5, 0, "0x40", 7));
  Memory memory(trace.names(), {}, Memory::By::range);
  trace.show(memory);
  Json json = memory_json(memory);
  CHECK_FALSE(json.contains("processes"));
  REQUIRE(json["ranges"].size() == 3);
  CHECK(json["ranges"][0]["range"] == "cache");
  CHECK(json["ranges"][0]["peak"]["gpu"]["bytes"] == 300);
  CHECK(json["ranges"][1]["range"] == "load");
  CHECK(json["ranges"][1]["kinds"]["device"]["peak"] == 100);
  CHECK(json["ranges"][1]["kinds"]["device"]["held"] == 50);
  CHECK(json["ranges"][1]["peak"]["gpu"]["blocks"] == 1);
  CHECK_FALSE(json["ranges"][2].contains("range"));
  CHECK(json["all"]["kinds"]["device"]["held"] == 357);
}
