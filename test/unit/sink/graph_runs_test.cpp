// What ran in graphs, as a run's own summary counts it and as `kernels` finds it in the trace.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <string>

#include "analyze/questions/kernels.hpp"
#include "sink/call_line.hpp"
#include "sink/event_lines.hpp"
#include "sink/stats.hpp"
#include "support/analyzing.hpp"
#include "support/sample_calls.hpp"

using namespace cudabpf;

namespace {

using Runs = std::map<std::string, std::uint64_t>;

// Counts calls while it writes their lines.
struct Run {
  StatsSink sink;
  CallLine writer;
  std::string text;
  std::uint64_t ids = 0;

  void call(Call& call) {
    call.id = ++ids;
    sink.call(call);
    std::string line(writer.bound(call), '\0');
    line.resize(static_cast<std::size_t>(writer.write(line.data(), call) - line.data()));
    text += line;
  }
  Runs counted() const {
    Runs runs;
    for (const auto& launches : sink.stats().launches) runs[launches.kernel] += launches.count;
    return runs;
  }
};

GraphWork of_kernel(const KernelName* kernel, std::uint32_t grid, bool conditional = false) {
  GraphWork work;
  work.what = NodeWork::kernel;
  work.kernel = kernel;
  work.has_dims = true;
  work.grid = {grid, 1, 1};
  work.block = {32, 1, 1};
  work.conditional = conditional;
  return work;
}

}  // namespace

TEST_CASE("A run's summary and the answer about its trace count the same runs of kernels") {
  KernelName gemm = kernel_named("gemm(int)", "gemm"), often = kernel_named("often()", "often");
  GraphContent graph;
  graph.number = 1;
  graph.nodes = 12;
  graph.kernels = 10;
  graph.works = {{of_kernel(&gemm, 1), 3},
                 {of_kernel(&gemm, 2), 2},
                 {of_kernel(nullptr, 3), 1},
                 {of_kernel(&often, 1, true), 7}};
  graph.more = 4;
  Run run;
  run.text = graph_line(graph, 0);
  SampleCall launch("cuLaunchKernel", {1, 2, 1, 1, 32, 1, 1, 0, 7, 0, 0});
  launch.kernel = &gemm;
  run.call(launch);
  launch.captured = true;
  run.call(launch);
  launch.captured = false;
  launch.fail(1);
  run.call(launch);
  for (int i = 0; i < 5; i++) {
    SampleCall of_graph("cuGraphLaunch", {0x10, 7});
    of_graph.graph = i < 3 ? &graph : nullptr;
    if (i == 3) of_graph.graph_unknown = GraphUnknown::changed;
    if (i == 4) of_graph.fail(1);
    run.call(of_graph);
  }

  analyze::LineParser parser;
  analyze::Kernels kernels(parser.names());
  auto seen =
      analyze::each_line(parser, run.text, [&](const analyze::Line& line) { kernels.line(line); });
  kernels.finish({});
  Runs found;
  for (const auto& figures : kernels.figures(analyze::Kernels::By::name))
    if (figures.runs()) found[figures.full.empty() ? "" : figures.name] += figures.runs();

  CHECK(found == Runs{{"gemm", 16}, {"", 15}});
  CHECK(run.counted() == found);
  CHECK(kernels.graph_launches().unknown() == 1);
  CHECK(run.sink.stats().unknown_graphs == 1);
}
