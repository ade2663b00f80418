#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "analyze/questions/kernels.hpp"
#include "support/graph_lines.hpp"
#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;
using By = Kernels::By;

namespace {

constexpr std::uint64_t MAX = std::numeric_limits<std::uint64_t>::max();

struct Answered {
  TraceText trace;
  Kernels kernels;

  explicit Answered(const std::string& lines, Part part = {})
      : trace(lines), kernels(trace.names()) {
    trace.show(kernels, part);
  }
  std::string page() {
    return page_text([&](Page& page) { add_kernels(page, kernels, By::configuration, 10); });
  }
};

std::string two_of_gemm_and_one_softmax() {
  return content_line(1, 4, 3,
                      kernel_nodes("gemm(int)", "2") + "," + kernel_nodes("softmax(int)", "1") +
                          R"(,{"op":"copy","size":4096,"count":1})");
}

}  // namespace

TEST_CASE("Each launch of a graph runs its kernels") {
  Answered of(two_of_gemm_and_one_softmax() + graph_launch(1, 10, of_graph(1, 4, 3)) +
              graph_launch(2, 20, of_graph(1, 4, 3)) + kernel_launch(3, 30, "gemm(int)"));
  auto all = of.kernels.figures(By::configuration);
  REQUIRE(all.size() == 2);
  CHECK(all[0].name == "gemm");
  CHECK(all[0].count == 1);
  CHECK(all[0].in_graphs == 4);
  CHECK(all[0].runs() == 5);
  CHECK(all[0].first == 10);
  CHECK(all[0].last == 30);
  CHECK(all[1].count == 0);
  CHECK(all[1].runs() == 2);
  CHECK(all[1].last == 20);

  const Kernels::Totals& totals = of.kernels.totals();
  CHECK(totals.launches == 1);
  CHECK(totals.graphs == 2);
  CHECK(totals.in_graphs == 6);
  CHECK(totals.runs() == 7);
  CHECK(of.kernels.graph_launches().known() == 2);
  CHECK(of.kernels.graph_launches().kernels() == 6);

  auto classes = of.kernels.classes();
  REQUIRE(classes.size() == 2);
  CHECK(classes[0].name == "matrix multiply");
  CHECK(classes[0].runs() == 5);
  CHECK(classes[1].in_graphs == 2);

  auto graphs = of.kernels.graphs();
  REQUIRE(graphs.size() == 1);
  CHECK(graphs[0].name == "graph 1");
  CHECK(graphs[0].launches == 2);
  CHECK(graphs[0].runs == 6);
  CHECK(graphs[0].launched.graph->bytes_copied == 4096);
  REQUIRE(graphs[0].kernels.size() == 2);
  CHECK(graphs[0].kernels[0].second == 2);

  std::string page = of.page();
  CHECK_THAT(page, ContainsSubstring("graph 1: gemm ×2, softmax"));
  CHECK_THAT(page, ContainsSubstring("4.00 KiB"));
  CHECK_THAT(page, !ContainsSubstring("not known"));

  Json json = kernels_json(of.kernels, By::name);
  CHECK(json["launches"]["runs"] == 7);
  CHECK(json["launches"]["unknown_graph_launches"].empty());
  CHECK(json["kernels"][0]["in_graphs"] == 4);
  CHECK(json["graphs"][0]["kernels"] == 3);
  CHECK(json["graphs"][0]["most_frequent"][0]["kernel"] == "gemm(int)");
}

TEST_CASE("What was captured or failed ran nothing") {
  Answered of(two_of_gemm_and_one_softmax() +
              kernel_launch(1, 10, "gemm(int)", R"(,"captured":true)") +
              kernel_launch(2, 20, "gemm(int)", "", 1) + kernel_launch(3, 30, "gemm(int)") +
              graph_launch(4, 40, R"(,"captured":true)") + graph_launch(5, 50, "", 1));
  auto all = of.kernels.figures(By::name);
  REQUIRE(all.size() == 1);
  CHECK(all[0].count == 3);
  CHECK(all[0].runs() == 1);
  CHECK(of.kernels.totals().captured == 1);
  CHECK(of.kernels.totals().graphs == 1);
  CHECK(of.kernels.totals().failed_graphs == 1);
  CHECK(of.kernels.graph_launches().unknown() == 0);
  CHECK(of.kernels.graph_launches().known() == 0);
  CHECK_THAT(of.page(), ContainsSubstring("1 launch of a graph failed, and ran nothing."));
}

TEST_CASE("Columns of graphs are shown only where there are any") {
  CHECK_THAT(Answered(kernel_launch(1, 10, "a")).page(), !ContainsSubstring("runs"));
  std::string captured = kernel_launch(1, 10, "a", R"(,"captured":true)");
  CHECK_THAT(Answered(captured).page(), ContainsSubstring("runs"));
  CHECK_THAT(Answered(captured).page(), !ContainsSubstring("in graphs"));
  std::string graph =
      content_line(3, 1, 1, kernel_nodes("a", "1")) + graph_launch(1, 5, of_graph(3));
  CHECK_THAT(Answered(graph).page(), ContainsSubstring("in graphs"));
}

TEST_CASE("Why it is not known what a graph ran is counted") {
  auto unknown = [](int id, const std::string& why) {
    return graph_launch(id, id, R"(,"graph_unknown":")" + why + "\"");
  };
  Answered of(unknown(1, "before") + unknown(2, "before") + unknown(3, "changed") +
              unknown(4, "of a newer version") + graph_launch(5, 5, "") +
              graph_launch(6, 6, of_graph(77)));
  CHECK(of.kernels.graph_launches().unknown() == 6);
  CHECK(unknown_graphs_json(of.kernels.graph_launches()).dump() ==
        R"({"before":2,"changed":1,"not_told":3})");
  CHECK_THAT(of.page(),
             ContainsSubstring("What 6 launches of graphs ran is not known, and not counted: 2 "
                               "of graphs made before the trace began, 1 of graphs\n  changed"));
}

TEST_CASE("What runs any number of times is named, and not counted") {
  Answered of(content_line(1, 1, 1,
                           kernel_nodes("once", "1") + "," +
                               kernel_nodes("often", "7", R"(,"conditional":true)")) +
              graph_launch(1, 10, of_graph(1)));
  CHECK(of.kernels.totals().in_graphs == 1);
  CHECK(of.kernels.figures(By::name).size() == 1);
  CHECK_THAT(of.page(), ContainsSubstring("run any number of times, and are not counted: often."));
  CHECK(kernels_json(of.kernels, By::name)["graphs"][0]["conditional"][0] == "often");
}

TEST_CASE("Kernels that a graph's list leaves out are counted without a name") {
  Answered of(content_line(1, 10, 9, kernel_nodes("a", "4"), R"(,"more":6)") +
              graph_launch(1, 10, of_graph(1, 10, 9)));
  CHECK(of.kernels.totals().in_graphs == 9);
  CHECK(of.kernels.totals().unlisted == 5);
  auto all = of.kernels.figures(By::name);
  REQUIRE(all.size() == 2);
  CHECK(all[0].name == "(not known)");
  CHECK(all[0].runs() == 5);
  CHECK_THAT(of.page(), ContainsSubstring("5 runs in graphs were of kernels that the trace does "
                                          "not list."));
}

TEST_CASE("A graph's content counts for the part in which it is launched") {
  std::string lines = two_of_gemm_and_one_softmax();
  for (int i = 0; i < 10; i++) lines += graph_launch(i + 1, 100 * i, of_graph(1, 4, 3));
  Answered of(lines, Part{250, 550});
  CHECK(of.kernels.totals().in_graphs == 9);
  CHECK(of.kernels.figures(By::name)[0].first == 300);
}

TEST_CASE("Unbelievable numbers do not wrap around") {
  std::string huge = std::to_string(MAX);
  Answered of(content_line(1, MAX, MAX,
                           kernel_nodes("a", huge) + "," + kernel_nodes("b", huge) +
                               R"(,{"op":"copy","size":)" + huge + R"(,"count":)" + huge + "}") +
              graph_launch(1, 10, of_graph(1)) + graph_launch(2, 20, of_graph(1)));
  CHECK(of.kernels.totals().in_graphs == MAX);
  CHECK(of.kernels.totals().runs() == MAX);
  for (const auto& figures : of.kernels.figures(By::name)) CHECK(figures.runs() == MAX);
  CHECK(of.kernels.graphs()[0].launched.graph->bytes_copied == MAX);
  of.page();
}
