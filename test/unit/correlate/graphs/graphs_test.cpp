// Contents of graphs that are made node by node, copied, changed and instantiated.
#include <catch2/catch_test_macros.hpp>

#include "graphing.hpp"

using namespace cudabpf;
using namespace samples;

namespace {

constexpr std::uint64_t GRAPH = 0x900, OTHER = 0x901, EXEC = 0x910;
constexpr std::uint64_t NODE = 0x801, NODE_2 = 0x802, NODE_3 = 0x803;

// A graph of two kernel nodes.
struct Two : Graphing {
  explicit Two(Correlator::Options options = {}) : Graphing(std::move(options)) {
    make(GRAPH);
    add_kernel(GRAPH, NODE, GEMM);
    add_kernel(GRAPH, NODE_2, RELU);
  }
};

}  // namespace

TEST_CASE("Nodes of every kind") {
  Graphing c;
  c.make(GRAPH);
  c.add_kernel(GRAPH, NODE, GEMM);
  auto add = [&](std::uint32_t type, auto fill, std::vector<std::uint64_t> outs = {NODE_2}) {
    StructBytes bytes = node_params(type);
    fill(bytes);
    c.call_with("cuGraphAddNode_v2", {0x1, GRAPH, 0, 0, 0, 0x2}, bytes, outs);
  };
  auto nothing = [](StructBytes&) {};
  auto kernel = [](StructBytes& b) {
    b.set<std::uint64_t>(16, RELU).set<std::uint32_t>(24, 3).set<std::uint32_t>(28, 1);
  };
  add(0, kernel);
  add(1, [](StructBytes& b) {
    for (std::size_t at : {208, 216, 224}) b.set<std::uint64_t>(at, at == 208 ? 512 : 2);
  });
  add(2, [](StructBytes& b) {
    b.set<std::uint32_t>(36, 4).set<std::uint64_t>(40, 16).set<std::uint64_t>(48, 1);
  });
  add(3, nothing);
  add(5, nothing);
  add(10, [](StructBytes& b) { b.set<std::uint64_t>(120, 4096); });
  add(11, nothing);
  c.call_with(
      "cuGraphAddMemsetNode", {0x1, GRAPH, 0, 0, 0x2, 0},
      StructBytes(40).set<std::uint32_t>(20, 1).set<std::uint64_t>(24, 7).set<std::uint64_t>(32, 1),
      {NODE_3});
  c.call_with("cuGraphAddMemAllocNode", {0x1, GRAPH, 0, 0, 0x2},
              StructBytes(112).set<std::uint64_t>(104, 256), {NODE_3});
  c.call_with("cuGraphAddEmptyNode", {0x1, GRAPH, 0, 0}, {}, {NODE_3});
  CHECK(c.launched_from(EXEC, GRAPH) ==
        "11/2 gemm:8*1 relu:3*1 copy:2048*1 set:7*1 set:64*1 alloc:256*1 alloc:4096*1 free*1 "
        "host*1 other*2");
}

TEST_CASE("What is instantiated stays as the graph was") {
  Two c;
  CHECK(c.launched_from(EXEC, GRAPH) == "2/2 gemm:8*1 relu:8*1");
  std::uint64_t number = c.last().graph->number;
  c.call_with("cuGraphDestroyNode", {NODE});
  CHECK(c.launched(EXEC) == "2/2 gemm:8*1 relu:8*1");
  CHECK(c.last().graph->number == number);
  CHECK(c.launched_from(0x911, GRAPH) == "1/1 relu:8*1");
  CHECK(c.last().graph->number != number);
  c.add_kernel(GRAPH, NODE_3, GEMM);
  CHECK(c.launched_from(0x912, GRAPH) == "2/2 gemm:8*1 relu:8*1");
  CHECK(c.last().graph->number == number);  // it holds the same
  c.call_with("cuGraphDestroy", {GRAPH});
  CHECK(c.launched(EXEC) == "2/2 gemm:8*1 relu:8*1");
}

TEST_CASE("Nodes change in a graph, and apart from it in what is instantiated") {
  Two c;
  c.instantiate(EXEC, GRAPH);
  c.call_with("cuGraphKernelNodeSetParams_v2", {NODE, 0x2}, kernel_node(GEMM, 99));
  CHECK(c.launched(EXEC) == "2/2 gemm:8*1 relu:8*1");
  CHECK(c.launched_from(0x911, GRAPH) == "2/2 gemm:99*1 relu:8*1");

  c.call_with("cuGraphExecKernelNodeSetParams_v2", {EXEC, NODE_2, 0x2}, kernel_node(GEMM, 8));
  CHECK(c.launched(EXEC) == "2/2 gemm:8*2");
  c.call_with("cuGraphExecNodeSetParams", {EXEC, NODE_2, 0x2},
              node_params(0).set<std::uint64_t>(16, RELU).set<std::uint32_t>(24, 5));
  CHECK(c.launched(EXEC) == "2/2 gemm:8*1 relu:5*1");
  c.call_with("cuGraphExecKernelNodeSetParams_v2", {EXEC, NODE, 0x2}, kernel_node(RELU, 5), {},
              FAILED);
  CHECK(c.launched(EXEC) == "2/2 gemm:8*1 relu:5*1");

  c.call_with("cuGraphNodeSetEnabled", {EXEC, NODE_2, 0});
  CHECK(c.launched(EXEC) == "1/1 gemm:8*1");
  c.call_with("cuGraphNodeSetEnabled", {EXEC, NODE_2, 1});
  CHECK(c.launched(EXEC) == "2/2 gemm:8*1 relu:5*1");
}

TEST_CASE("What is instantiated becomes what another graph holds") {
  Two c;
  c.instantiate(EXEC, GRAPH);
  c.make(OTHER);
  c.add_kernel(OTHER, NODE_3, GEMM, 4);
  c.call_with("cuGraphExecUpdate_v2", {EXEC, OTHER, 0}, {}, {}, 910);
  CHECK(c.launched(EXEC) == "2/2 gemm:8*1 relu:8*1");
  c.call_with("cuGraphExecUpdate_v2", {EXEC, OTHER, 0});
  CHECK(c.launched(EXEC) == "1/1 gemm:4*1");
  c.call_with("cuGraphExecDestroy", {EXEC});
  CHECK(c.launched(EXEC) == "before");
}

TEST_CASE("Nodes that are disabled stay so when what is instantiated is updated") {
  Two c;
  c.instantiate(EXEC, GRAPH);
  c.call_with("cuGraphNodeSetEnabled", {EXEC, NODE, 0});
  c.call_with("cuGraphKernelNodeSetParams_v2", {NODE_2, 0x2}, kernel_node(RELU, 99));
  c.call_with("cuGraphExecUpdate_v2", {EXEC, GRAPH, 0});
  CHECK(c.launched(EXEC) == "1/1 relu:99*1");
  SECTION("but in another graph, it is not known which they are") {
    c.make(OTHER);
    c.add_kernel(OTHER, NODE_3, GEMM);
    c.add_kernel(OTHER, 0x804, GEMM);
    c.call_with("cuGraphExecUpdate_v2", {EXEC, OTHER, 0});
    CHECK(c.launched(EXEC) == "changed");
    c.call_with("cuGraphExecUpdate_v2", {EXEC, GRAPH, 0});
    CHECK(c.launched(EXEC) == "changed");
    CHECK(c.launched_from(EXEC, GRAPH) == "2/2 gemm:8*1 relu:99*1");
  }
  SECTION("also in what was instantiated before the trace began") {
    c.call_with("cuGraphNodeSetEnabled", {0x911, 0x888, 0});
    c.call_with("cuGraphExecUpdate_v2", {0x911, GRAPH, 0});
    CHECK(c.launched(0x911) == "changed");
  }
}

TEST_CASE("Child graphs") {
  Two c;
  c.make(OTHER);
  c.add_kernel(OTHER, NODE_3, RELU, 2);
  c.call_with("cuGraphAddChildGraphNode", {0x1, OTHER, 0, 0, GRAPH}, {}, {0x804});
  c.call_with("cuGraphAddNode", {0x1, OTHER, 0, 0, 0x2},
              node_params(4).set<std::uint64_t>(16, GRAPH), {0x805});
  CHECK(c.launched_from(EXEC, OTHER) == "5/5 gemm:8*2 relu:8*2 relu:2*1");
  SECTION("are copies") {
    c.call_with("cuGraphDestroyNode", {NODE});
    CHECK(c.launched_from(0x911, OTHER) == "5/5 gemm:8*2 relu:8*2 relu:2*1");
  }
  SECTION("change by their own handle") {
    c.call_with("cuGraphChildGraphNodeGetGraph", {0x804, 0x1}, {}, {0x902});
    c.add_kernel(0x902, 0x806, GEMM);
    CHECK(c.launched(EXEC) == "5/5 gemm:8*2 relu:8*2 relu:2*1");
    CHECK(c.launched_from(0x911, OTHER) == "6/6 gemm:8*3 relu:8*2 relu:2*1");
  }
  SECTION("change in what is instantiated") {
    c.make(0x903);
    c.call_with("cuGraphExecChildGraphNodeSetParams", {EXEC, 0x804, 0x903});
    CHECK(c.launched(EXEC) == "3/3 gemm:8*1 relu:2*1 relu:8*1");
  }
}

TEST_CASE("Clones have nodes of their own") {
  Two c;
  c.call_with("cuGraphClone", {0x1, GRAPH}, {}, {OTHER});
  c.call_with("cuGraphNodeFindInClone", {0x1, NODE, OTHER}, {}, {NODE_3});
  c.call_with("cuGraphKernelNodeSetParams_v2", {NODE_3, 0x2}, kernel_node(RELU, 8));
  CHECK(c.launched_from(EXEC, GRAPH) == "2/2 gemm:8*1 relu:8*1");
  CHECK(c.launched_from(0x911, OTHER) == "2/2 relu:8*2");
  c.call_with("cuGraphExecKernelNodeSetParams_v2", {0x911, NODE_3, 0x2}, kernel_node(GEMM, 1));
  CHECK(c.launched(0x911) == "2/2 gemm:1*1 relu:8*1");
}

TEST_CASE("Two copies of a graph in one have nodes of their own") {
  Two c;
  c.make(OTHER);
  c.call_with("cuGraphAddChildGraphNode", {0x1, OTHER, 0, 0, GRAPH}, {}, {0x804});
  c.call_with("cuGraphAddChildGraphNode", {0x1, OTHER, 0, 0, GRAPH}, {}, {0x805});
  c.call_with("cuGraphChildGraphNodeGetGraph", {0x804, 0x1}, {}, {0x902});
  c.call_with("cuGraphChildGraphNodeGetGraph", {0x805, 0x1}, {}, {0x903});
  c.call_with("cuGraphNodeFindInClone", {0x1, NODE, 0x902}, {}, {0x806});
  c.call_with("cuGraphNodeFindInClone", {0x1, NODE, 0x903}, {}, {0x807});
  c.instantiate(EXEC, OTHER);
  c.call_with("cuGraphExecKernelNodeSetParams_v2", {EXEC, 0x806, 0x2}, kernel_node(GEMM, 1));
  c.call_with("cuGraphExecKernelNodeSetParams_v2", {EXEC, 0x807, 0x2}, kernel_node(GEMM, 2));
  CHECK(c.launched(EXEC) == "4/4 relu:8*2 gemm:1*1 gemm:2*1");
  c.call_with("cuGraphKernelNodeSetParams_v2", {0x806, 0x2}, kernel_node(GEMM, 3));
  CHECK(c.launched_from(0x911, OTHER) == "4/4 relu:8*2 gemm:3*1 gemm:8*1");
}

TEST_CASE("Bodies of conditional nodes are done any number of times") {
  Two c;
  c.call_with("cuGraphAddNode_v2", {0x1, GRAPH, 0, 0, 0, 0x2}, node_params(CB_NODE_CONDITIONAL),
              {NODE_3, CB_NODE_CONDITIONAL, 0x3, OTHER});
  c.add_kernel(OTHER, 0x804, GEMM, 77);
  CHECK(c.launched_from(EXEC, GRAPH) == "3/2 gemm:8*1 relu:8*1 conditional*1? gemm:77*1");
}

TEST_CASE("Why it is not known what a graph holds") {
  SECTION("it was made before") {
    Graphing c;
    CHECK(c.launched(EXEC) == "before");
    c.instantiate(EXEC, GRAPH);
    CHECK(c.launched(EXEC) == "before");
    c.end_capture(GRAPH);
    CHECK(c.launched_from(EXEC, GRAPH) == "before");
    c.make(OTHER);
    c.call_with("cuGraphAddChildGraphNode", {0x1, OTHER, 0, 0, 0x999}, {}, {NODE});
    CHECK(c.launched_from(EXEC, OTHER) == "before");
  }
  SECTION("or by a call that is not known, where nothing was missed") {
    Graphing c;
    c.feed(process({.ts = 1}, abi::CB_EXEC));
    CHECK(c.launched(EXEC) == "not_recorded");
  }
  SECTION("calls are missing") {
    Two c;
    c.instantiate(EXEC, GRAPH);
    c.head.drops = 1;
    CHECK(c.launched(EXEC) == "lost");
    CHECK(c.launched_from(EXEC, GRAPH) == "lost");
    c.make(GRAPH);
    c.add_kernel(GRAPH, NODE, GEMM);
    CHECK(c.launched_from(EXEC, GRAPH) == "1/1 gemm:8*1");
    c.begin_capture();
    c.head.drops = 2;
    c.end_capture(GRAPH);
    CHECK(c.launched_from(EXEC, GRAPH) == "lost");
  }
  SECTION("what made a node that is changed is missing") {
    Two c;
    c.head.drops = 1;
    c.make(OTHER);
    c.call_with("cuGraphDestroyNode", {NODE});
    CHECK(c.launched_from(EXEC, OTHER) == "lost");
  }
  SECTION("a launch's beginning is missing") {
    Two c;
    c.head.ts += 1000;
    c.head.flags = 0;
    c.feed(returned(c.head, "cuGraphLaunch"));
    CHECK(c.last().entry_lost);
    CHECK(c.shown(c.last()) == "lost");
  }
  SECTION("a struct could not be read") {
    Two c;
    c.head.flags = abi::CB_READ_FAULT;
    c.call_with("cuGraphAddNode_v2", {0x1, GRAPH, 0, 0, 0, 0x2}, {}, {NODE_3});
    c.head.flags = 0;
    CHECK(c.launched_from(EXEC, GRAPH) == "lost");
  }
  SECTION("functions are left out") {
    Correlator::Options options;
    options.coverage.graphs = Graphs::Recorded::not_all;
    Two c(options);
    CHECK(c.launched_from(EXEC, GRAPH) == "not_recorded");
    c.begin_capture();
    CHECK_FALSE(c.launch(GEMM).captured);
  }
  SECTION("an unknown node was changed") {
    Two c;
    c.instantiate(EXEC, GRAPH);
    c.call_with("cuGraphExecKernelNodeSetParams_v2", {EXEC, 0x888, 0x2}, kernel_node(GEMM, 1));
    CHECK(c.launched(EXEC) == "changed");
    c.call_with("cuGraphDestroyNode", {0x888});
    CHECK(c.launched_from(EXEC, GRAPH) == "changed");
  }
  SECTION("there is no space") {
    Correlator::Options options;
    options.limits.of(Kept::graph_nodes) = 4;
    Two c(options);
    CHECK(c.launched_from(EXEC, GRAPH) == "too_many");
    CHECK(c.correlator.bounds().all_left_out(Kept::graph_nodes) > 0);
    c.call_with("cuGraphExecDestroy", {EXEC});
    c.call_with("cuGraphDestroy", {GRAPH});
    c.make(OTHER);
    c.add_kernel(OTHER, NODE, GEMM);
    c.instantiate(EXEC, OTHER);
    CHECK(c.launched(EXEC) == "too_many");  // two of it take more than there is
  }
}

TEST_CASE("What a process held of graphs goes with it") {
  Correlator::Options options;
  options.limits.of(Kept::graph_nodes) = 20;
  Two c(options);
  CHECK(c.launched_from(EXEC, GRAPH) == "2/2 gemm:8*1 relu:8*1");
  c.head.ts += 1000;
  c.feed(process(c.head, abi::CB_EXEC));
  CHECK(c.launched(EXEC) == "not_recorded");
  for (int i = 0; i < 20; i++) {
    c.make(GRAPH);
    c.add_kernel(GRAPH, NODE, 0x7777);
    CHECK(c.launched_from(EXEC, GRAPH) == "1/1 kernel:8*1");
    c.head.ts += 1000;
    c.feed(process(c.head, abi::CB_EXEC));
  }
}

TEST_CASE("Graphs within graphs cannot grow without end") {
  Graphing c;
  c.make(GRAPH);
  c.add_kernel(GRAPH, NODE, GEMM);
  std::uint64_t inner = GRAPH;
  for (std::uint64_t depth = 0; depth < 64; depth++) {
    std::uint64_t outer = 0xa000 + depth;
    c.make(outer);
    c.call_with("cuGraphAddChildGraphNode", {0x1, outer, 0, 0, inner}, {}, {0xb000 + 2 * depth});
    c.call_with("cuGraphAddChildGraphNode", {0x1, outer, 0, 0, inner}, {}, {0xb001 + 2 * depth});
    inner = outer;
    if (depth == 2) c.instantiate(0x911, outer);
  }
  CHECK(c.launched_from(EXEC, inner) == "too_many");
  CHECK(c.launched(0x911) == "8/8 gemm:8*8");
}

TEST_CASE("However often a graph changes, what is kept of it is bounded") {
  Correlator::Options options;
  options.limits.of(Kept::graph_nodes) = 20;
  Two c(options);
  c.instantiate(EXEC, GRAPH);
  std::uint64_t number = 0;
  for (std::uint32_t grid = 1; grid <= 50; grid++) {
    c.call_with("cuGraphExecKernelNodeSetParams_v2", {EXEC, NODE, 0x2}, kernel_node(GEMM, grid));
    CHECK(c.launched(EXEC).starts_with("2/2 "));
    CHECK(c.last().graph->number > number);
    number = c.last().graph->number;
  }
  CHECK(c.launched(EXEC) == "2/2 gemm:50*1 relu:8*1");
  CHECK(c.last().graph->number == number);
  CHECK(c.correlator.bounds().all_left_out(Kept::graph_nodes) == 0);
}

TEST_CASE("A long list ends, and says how many nodes are not in it") {
  Graphing c;
  c.make(GRAPH);
  for (std::uint32_t grid = 1; grid <= 1005; grid++) c.add_kernel(GRAPH, 0xb000 + grid, GEMM, grid);
  c.instantiate(EXEC, GRAPH);
  c.launched(EXEC);
  REQUIRE(c.last().graph);
  CHECK(c.last().graph->nodes == 1005);
  CHECK(c.last().graph->operations.size() == 1000);
  CHECK(c.last().graph->more == 5);
  std::uint64_t number = c.last().graph->number;
  c.launched_from(0x911, GRAPH);
  CHECK(c.last().graph->number == number);
}
