#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "analyze/derived/graph_contents.hpp"
#include "support/analyzing.hpp"
#include "support/graph_lines.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

// What each launch of a graph holds; null: it is not known.
struct Launched {
  LineParser parser;
  std::vector<const LaunchedGraph*> graphs;
  std::unique_ptr<DerivedFields> seen;

  explicit Launched(const std::string& text)
      : seen(each_line(parser, text, [this](const Line& line) {
          if (line.kind == LineKind::call) graphs.push_back(line.content);
        })) {}
  std::string_view name(const NodesAlike& nodes) const { return parser.names().text(nodes.kernel); }
};

}  // namespace

TEST_CASE("A launch has what its graph holds") {
  Launched of(content_line(4, 5, 2,
                           kernel_nodes("gemm(int)", "2", R"(,"kernel_from":"handle")", 7) +
                               R"(,{"op":"kernel","handle":"0xabc","count":1,"conditional":true})"
                               R"(,{"op":"copy","size":100,"count":3},{"op":"host","count":1})") +
              graph_launch(1, 10, of_graph(4)) + graph_launch(2, 20, of_graph(5)) +
              graph_launch(3, 30, R"(,"graph_unknown":"before")"));
  REQUIRE(of.graphs.size() == 3);
  REQUIRE(of.graphs[0]);
  CHECK(!of.graphs[1]);
  CHECK(!of.graphs[2]);
  const LaunchedGraph& graph = *of.graphs[0];
  CHECK(graph.number == 4);
  CHECK(graph.nodes == 6);  // the list has more than the line says
  CHECK(graph.kernels == 2);
  CHECK(graph.unlisted_kernels == 0);
  CHECK(graph.bytes_copied == 300);
  REQUIRE(graph.list.size() == 4);
  CHECK(of.name(graph.list[0]) == "gemm(int)");
  CHECK(graph.list[0].grid == Dimensions{7, 1, 1});
  CHECK(graph.list[0].block == Dimensions{32, 1, 1});
  CHECK(graph.list[1].handle == 0xabc);
  CHECK(graph.list[1].grid == Dimensions{});
  CHECK(graph.list[2].what == NodeWork::copy);
  CHECK(graph.list[3].what == NodeWork::host);
}

TEST_CASE(
    "The first of two contents with one number counts, as each file of a trace repeats them") {
  Launched of(content_line(1, 1, 1, kernel_nodes("a", "1")) + graph_launch(1, 10, of_graph(1)) +
              content_line(1, 9, 9, kernel_nodes("b", "9")) + graph_launch(2, 20, of_graph(1)));
  REQUIRE(of.graphs.size() == 2);
  CHECK(of.graphs[0] == of.graphs[1]);
  CHECK(of.graphs[0]->kernels == 1);
}

TEST_CASE("Contents that make no sense are read as far as they do") {
  for (const char* list :
       {"1", "null", "[]", R"("kernel")", "{}", R"({"op":7})", R"({"op":"kernel","kernel":{}})",
        R"({"op":"kernel","kernel":"a","grid":[1,2],"count":1})",
        R"({"op":"kernel","kernel":"a","grid":[-1,2,"x"],"count":-5})",
        R"({"op":"kernel","handle":"0xzz","count":1e300})",
        R"({"op":"kernel","handle":12,"count":"2","conditional":"yes"})"}) {
    INFO(list);
    Launched of(content_line(1, 0, 0, list) + graph_launch(1, 10, of_graph(1)));
    REQUIRE(of.graphs.size() == 1);
    REQUIRE(of.graphs[0]);
    for (const NodesAlike& nodes : of.graphs[0]->list) {
      CHECK(nodes.count <= 1);
      CHECK(nodes.grid == Dimensions{});
      CHECK(nodes.handle == 0);
      CHECK(!nodes.conditional);
    }
  }
  std::string none = R"({"type":"graph","op":"content","ts":5,"pid":1,"graph":1,"content":7})"
                     "\n";
  CHECK(!Launched(none + graph_launch(1, 10, of_graph(1))).graphs[0]);
  std::string no_number = R"({"type":"graph","op":"content","ts":5,"pid":1,"content":[]})"
                          "\n";
  CHECK(!Launched(no_number + graph_launch(1, 10, "")).graphs[0]);
}

TEST_CASE("A bounded number of contents is kept, and a bounded part of each") {
  std::string list;
  SECTION("of one") {
    for (int i = 0; i < 1500; i++) list += (i ? "," : "") + kernel_nodes("a", "1", "", i + 1);
    Launched of(content_line(1, 1500, 1500, list) + graph_launch(1, 10, of_graph(1)));
    CHECK(of.graphs[0]->list.size() == 1000);
    CHECK(of.graphs[0]->kernels == 1500);
    CHECK(of.graphs[0]->unlisted_kernels == 500);
  }
  SECTION("of all") {
    for (int i = 0; i < 1500; i++) list += i ? ",0" : "0";  // what is no node takes a place, too
    std::string lines;
    for (std::uint64_t i = 0; i < 600; i++) lines += content_line(i, 1500, 1500, list);
    Launched of(lines + graph_launch(1, 10, of_graph(0)) + graph_launch(2, 20, of_graph(599)));
    CHECK(of.graphs[0]);
    CHECK(!of.graphs[1]);
  }
}

TEST_CASE("A graph has all collectives that were captured into it, or none") {
  auto collectives = [](const std::string& list) {
    Launched of(content_line(4, 1, 1, kernel_nodes("k", "1"), R"(,"collectives":)" + list) +
                graph_launch(1, 10, of_graph(4)));
    REQUIRE(of.graphs[0]);
    return of.graphs[0]->collectives;
  };
  CHECK(collectives("[7,9]") == std::vector<std::uint64_t>{7, 9});
  CHECK(collectives("[7,\"9\"]").empty());
  CHECK(collectives("{}").empty());
  std::string many = "1";
  for (int i = 2; i <= 5000; i++) many += "," + std::to_string(i);
  CHECK(collectives("[" + many + "]").empty());
}
