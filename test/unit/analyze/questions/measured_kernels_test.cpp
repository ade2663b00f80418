#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "analyze/questions/kernels.hpp"
#include "support/gpu_operation_lines.hpp"
#include "support/graph_lines.hpp"
#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;
using By = Kernels::By;

namespace {

struct Measured {
  TraceText trace;
  Kernels kernels;

  explicit Measured(const std::string& lines, Part part = {},
                    const std::string& header = GPUS_MEASURED)
      : trace(lines, header), kernels(trace.names()) {
    trace.show(kernels, part);
  }
  std::string page(unsigned width = 160) {
    return page_text([&](Page& page) { add_kernels(page, kernels, By::configuration, 10); }, width);
  }
  Json json() { return kernels_json(kernels, By::configuration); }
};

std::string copy_call(int id, int ts) {
  return fmt::format(
      R"({{"id":{},"type":"transfer","op":"HtoD","name":"cuMemcpyHtoDAsync","ts":{},"duration_us":1.000,"pid":1,"tid":1,"ret":0,"stream":"0x7","async":true,"size":4000}})"
      "\n",
      id, ts);
}

std::string graph_of_two() {
  return content_line(1, 2, 2,
                      kernel_nodes("gemm(int)", "1") + "," + kernel_nodes("relu(int)", "1"));
}

}  // namespace

TEST_CASE("A kernel's time on the GPU is its launch's, wherever it is shown") {
  Measured of(kernel_launch(1, 1000, "a(int)") + kernel_launch(2, 2000, "b(int)") +
              kernel_launch(3, 3000, "a(int)") + gpu_kernel(9000, 500, "a(int)", of_call(3)) +
              gpu_kernel(4000, 3000, "a(int)", of_call(1)) +
              gpu_kernel(5000, 9000, "b(int)", of_call(2)));  // overlaps the others
  auto all = of.kernels.figures(By::configuration);
  REQUIRE(all.size() == 2);
  CHECK(all[0].name == "b");  // ran less often, but longer
  CHECK(all[0].gpu.times.total() == 9000);
  CHECK(all[0].gpu.queued.total() == 3000);
  CHECK(all[1].gpu.times.count() == 2);
  CHECK(all[1].gpu.times.total() == 3500);
  CHECK(all[1].gpu.times.min() == 500);
  CHECK(all[1].gpu.times.max() == 3000);
  CHECK(all[1].gpu.queued.total() == 3000 + 6000);
  CHECK(of.kernels.gpu().kernels().times.total() == 12'500);

  Json json = of.json();
  CHECK(json["gpu"]["graphs"] == "nodes");
  CHECK(json["gpu"]["kernels"]["total_us"] == 12.5);
  CHECK(json["gpu"]["kernels_queue"]["count"] == 3);
  CHECK(json["kernels"][0]["gpu"]["mean_us"] == 9.0);
  CHECK(json["kernels"][0]["gpu_share"] == 72.0);
  CHECK(json["kernels"][1]["gpu"]["min_us"] == 0.5);
  CHECK(json["classes"][0]["gpu"]["count"] == 3);
  std::string page = of.page();
  CHECK_THAT(page, ContainsSubstring("GPU time") && ContainsSubstring("72.0 %") &&
                       ContainsSubstring("From the beginning of the launching call until a kernel "
                                         "began on the GPU: p50 3.00 µs, p99 6.00 µs."));
  CHECK(page.find("not in a trace") == std::string::npos);
  CHECK(page.find("asked for") == std::string::npos);
}

TEST_CASE("A trace without lines of GPUs is answered as ever") {
  Measured of(kernel_launch(1, 1000, "a(int)"), {}, "");
  CHECK_FALSE(of.kernels.gpu().measured());
  CHECK_FALSE(of.json().contains("gpu"));
  CHECK_FALSE(of.json()["kernels"][0].contains("gpu"));
  CHECK_THAT(of.page(), ContainsSubstring("record with --gpu"));
}

TEST_CASE("Kernels in graphs are measured node by node, and their launch from first to last") {
  std::string lines =
      graph_of_two() + graph_launch(1, 1000, of_graph(1, 2, 2)) +
      graph_launch(2, 50000, of_graph(1, 2, 2)) +
      gpu_kernel(8000, 4000, "relu(int)", of_call(1) + R"(,"node":1)") +
      gpu_kernel(3000, 4500, "gemm(int)", of_call(1) + R"(,"node":0)") +
      gpu_kernel(60000, 1000, "gemm(int)", of_call(2) + R"(,"node":0)") +
      gpu_operation("copy", 61000, 500, of_call(2) + R"(,"node":2,"size":64,"direction":"DtoD")");
  Measured of(lines);
  auto all = of.kernels.figures(By::configuration);
  REQUIRE(all.size() == 2);
  CHECK(all[0].name == "gemm");
  CHECK(all[0].in_graphs == 2);
  CHECK(all[0].gpu.times.total() == 5500);
  CHECK(all[0].gpu.queued.count() == 0);  // the graph was queued, not its nodes
  auto graphs = of.kernels.graphs();
  REQUIRE(graphs.size() == 1);
  CHECK(graphs[0].gpu.times.count() == 2);
  CHECK(graphs[0].gpu.times.total() == 9000 + 1500);
  CHECK(graphs[0].gpu.queued.total() == 2000 + 10000);
  CHECK(of.json()["graphs"][0]["gpu"]["total_us"] == 10.5);
  CHECK_THAT(of.page(), ContainsSubstring("until a graph began on the GPU") &&
                            ContainsSubstring("3 runs of kernels were measured; the calls in "
                                              "the trace asked for 4"));
  SECTION("of a part, launches that were made in it are shown whole") {
    Measured part(lines, {.from = 0, .to = 40000});
    CHECK(part.kernels.graphs().at(0).gpu.times.count() == 1);
    CHECK(part.kernels.graphs().at(0).gpu.times.total() == 9000);
    Measured later(lines, {.from = 5000, .to = 40000});
    CHECK(later.kernels.gpu().graph_launches().times.count() == 0);
    CHECK(later.kernels.gpu().kernels().times.count() == 1);
  }
}

TEST_CASE("Where graphs are measured as a whole, their kernels have no times") {
  std::string header = R"(,"gpu_timing":"graphs")";
  Measured of(graph_of_two() + graph_launch(1, 1000, of_graph(1, 2, 2)) +
                  graph_launch(2, 2000, R"(,"graph_unknown":"changed")") +
                  kernel_launch(3, 3000, "relu(int)") +
                  gpu_operation("graph", 5000, 7000, of_call(1)) +
                  gpu_operation("graph", 13000, 100, of_call(2)) +
                  gpu_operation("graph", 500, 30, R"(,"unjoined":"no_call")") +
                  gpu_kernel(15000, 20, "relu(int)", of_call(3)),
              {}, header);
  CHECK(of.kernels.graphs().at(0).gpu.times.total() == 7000);
  CHECK(of.kernels.graphs().at(0).gpu.queued.total() == 4000);
  CHECK(of.kernels.gpu().graph_launches().times.total() == 7130);
  CHECK(of.json()["gpu"]["graphs"] == "whole");
  CHECK(of.json()["gpu"]["unknown_graph_launches"]["count"] == 2);
  auto all = of.kernels.figures(By::configuration);
  CHECK(all[0].name == "relu");
  CHECK(all[1].gpu.times.count() == 0);
  std::string page = of.page();
  CHECK_THAT(page, ContainsSubstring("the kernels in graphs have no times") &&
                       ContainsSubstring("2 launches of graphs whose contents are not known took "
                                         "130 ns"));
  CHECK(page.find("asked for") == std::string::npos);  // one launch, one run measured
}

TEST_CASE("Copies and fills, by direction, with their bandwidth") {
  Measured of(copy_call(1, 1000) +
              gpu_operation("copy", 3000, 2000, of_call(1) + R"(,"size":4000,"direction":"HtoD")") +
              gpu_operation("copy", 6000, 2000, R"(,"size":4000,"direction":"HtoD")") +
              gpu_operation("set", 9000, 0, R"(,"size":64)") + gpu_operation("copy", 9500, 10, ""));
  auto copies = of.kernels.gpu().copies();
  REQUIRE(copies.size() == 3);
  CHECK(copies[0].name == "HtoD");
  CHECK(copies[0].figures.bytes == 8000);
  CHECK(copies[0].figures.times.total() == 4000);
  CHECK(copies[0].figures.queued.count() == 1);
  CHECK(copies[0].figures.queued.total() == 2000);
  CHECK(copies[1].name == "(not known)");
  CHECK(copies[2].fills);
  Json json = of.json()["gpu"]["copies"];
  CHECK(json[0]["bytes_per_second"] == 2e9);
  CHECK(json[2]["bytes_per_second"].is_null());  // no time, no rate
  CHECK_THAT(of.page(), ContainsSubstring("2.00 GB/s"));
}

TEST_CASE("What no call issued is a kernel all the same") {
  Measured of(gpu_kernel(100, 70, "early(int)", R"(,"unjoined":"no_call")") +
              gpu_kernel(300, 30, "early(int)", of_call(77)));  // of a call that is not there
  auto all = of.kernels.figures(By::configuration);
  REQUIRE(all.size() == 1);
  CHECK(all[0].name == "early");
  CHECK(all[0].runs() == 0);
  CHECK_FALSE(all[0].launched());
  CHECK(all[0].gpu.times.total() == 100);
  CHECK(of.json()["kernels"][0]["first_ts"].is_null());
  CHECK_THAT(of.page(), ContainsSubstring("early"));
}

TEST_CASE("Absurd lines of GPUs' work neither wrap around nor are believed of calls") {
  constexpr std::uint64_t LONG = std::uint64_t{9} * 1000 * 1000 * 1000 * 1000 * 1000 * 1000 / 2;
  Measured of(kernel_launch(1, 5000, "a(int)") +
              gpu_kernel(1000, LONG, "a(int)", of_call(1)) +  // began before it was issued
              gpu_kernel(LONG, LONG, "a(int)", of_call(1)) +  // once more of the same call
              gpu_kernel(0, LONG, "a(int)", of_call(0)) + gpu_kernel(0, LONG, "a(int)", "") +
              gpu_kernel(9, LONG, "a(int)", "") +
              gpu_operation("copy", 1, LONG, R"(,"size":18446744073709551615,"direction":"peer")") +
              gpu_operation("copy", 1, 1, R"(,"size":18446744073709551615,"direction":"peer")") +
              gpu_operation("graph", 7, 1, of_call(1)) +
              R"x({"type":"gpu","op":"kernel","ts":1,"pid":1,"kernel":"a(int)"})x"
              "\n");
  auto all = of.kernels.figures(By::configuration);
  REQUIRE(all.size() == 1);
  CHECK(all[0].gpu.times.count() == 5);
  CHECK(all[0].gpu.times.total() == std::numeric_limits<std::uint64_t>::max());
  CHECK(all[0].gpu.queued.count() == 2);
  CHECK(all[0].gpu.queued.min() == 0);
  CHECK(of.kernels.gpu().copies().at(0).figures.bytes == std::numeric_limits<std::uint64_t>::max());
  CHECK_FALSE(of.page().empty());
  CHECK_FALSE(of.json().empty());
}

TEST_CASE("Any number of directions takes bounded memory") {
  std::string lines;
  for (int i = 0; i < 200; i++)
    lines += gpu_operation("copy", 5, 1, fmt::format(R"(,"size":1,"direction":"d{}")", i));
  Measured of(lines);
  CHECK(of.kernels.gpu().copies().size() == 65);
  CHECK(of.kernels.gpu().copies().at(0).name == "(others)");
}

TEST_CASE("Kernels that ran in graphs without a measure of their own did run") {
  const std::string launched = graph_of_two() + graph_launch(1, 1000, of_graph(1, 2, 2)) +
                               gpu_operation("graph", 2000, 500, of_call(1));
  Measured whole(launched, {}, R"(,"gpu_timing":"graphs")");
  CHECK_THAT(whole.page(), ContainsSubstring("No run of a kernel was measured.") &&
                               !ContainsSubstring("No kernel ran."));
}
