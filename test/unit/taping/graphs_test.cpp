#include "taping/graphs.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <string>

#include "support/kept_graphs.hpp"
#include "support/sample_calls.hpp"

using namespace cudabpf;
using namespace cudabpf::taping;

namespace {

constexpr std::uint64_t SOURCE = 0x6000, CHANGED = 0x7000;

struct ChangingProgram {
  KeepingProcess process;
  Graphs graphs;
  std::uint64_t places = 0;

  std::uint64_t kept(const SampleNodes& nodes) {
    process.payloads[++places] = nodes.payload();
    return places;
  }
  void call(const char* symbol, std::vector<std::uint64_t> words, std::uint64_t payload = 0,
            std::vector<std::uint64_t> outs = {}) {
    SampleCall call(symbol, std::move(words), std::move(outs));
    call.payload = payload;
    graphs.call(call);
  }
  void instantiate(const SampleNodes& nodes) {
    call("cuGraphInstantiateWithFlags", {0, SOURCE, 0}, kept(nodes), {CHANGED});
  }
  void update(const SampleNodes& nodes) {
    call("cuGraphExecUpdate_v2", {CHANGED, SOURCE, 0}, kept(nodes));
  }
  void set(std::uint64_t node, const SampleNodes& given) {
    call("cuGraphExecMemsetNodeSetParams", {CHANGED, node, 0, 0}, kept(given));
  }
  void enable(std::uint64_t node, std::uint64_t enabled) {
    call("cuGraphNodeSetEnabled", {CHANGED, node, enabled});
  }
  // The values of the fills that a launch does, or why it cannot be captured.
  std::string work() { return work_of_graph(graphs.executable(CHANGED)); }
  std::string work_of_graph(const std::shared_ptr<const ExecutableGraph>& graph) const {
    if (!graph) return "unknown";
    auto work = work_of(*graph, process);
    if (!work) return work.error().message;
    std::string values;
    for (const KeptNode& node : *work) {
      GivenSet set;
      std::memcpy(&set, node.given.data(), sizeof(set));
      values += std::to_string(set.value) + " ";
    }
    return values;
  }
};

GivenSet fill_with(std::uint32_t value) { return {0x1000, 0, value, 1, 64, 1}; }

// Fills with these values, by nodes with handles from `first` on.
SampleNodes fills(std::uint64_t first, const std::vector<std::uint32_t>& values) {
  SampleNodes nodes;
  for (std::uint32_t value : values) nodes.add(first++, NodeType::set, fill_with(value));
  return nodes;
}

SampleNodes given(std::uint32_t value) {
  SampleNodes nodes = fills(0, {value});
  nodes.head.of_node = 1;
  return nodes;
}

}  // namespace

TEST_CASE("An executable graph does what its graph's nodes were given") {
  ChangingProgram program;
  CHECK(program.work() == "unknown");
  program.instantiate(fills(1, {10, 20, 30}).edge(3, 1));
  CHECK(program.work() == "20 30 10 ");
  program.call("cuGraphExecDestroy", {CHANGED});
  CHECK(program.work() == "unknown");
}

TEST_CASE("What a node is given later changes one launch after the other, not those before") {
  ChangingProgram program;
  program.instantiate(fills(1, {10, 20}));
  auto before = program.graphs.executable(CHANGED);
  program.set(2, given(21));
  auto between = program.graphs.executable(CHANGED);
  program.set(2, given(22));
  program.set(1, given(11));
  CHECK(program.work() == "11 22 ");
  CHECK(program.work_of_graph(between) == "10 21 ");
  CHECK(program.work_of_graph(before) == "10 20 ");
  CHECK(program.graphs.executable(CHANGED) == program.graphs.executable(CHANGED));
}

TEST_CASE("Nodes can be disabled, and stay so in an update") {
  ChangingProgram program;
  program.instantiate(fills(1, {10, 20}));
  program.enable(1, 0);
  CHECK(program.work() == "20 ");
  program.set(2, given(21));
  program.update(fills(1, {11, 22}));
  CHECK(program.work() == "22 ");
  program.enable(1, 1);
  CHECK(program.work() == "11 22 ");
}

TEST_CASE("After an update, the first graph's nodes still name those of the executable graph") {
  ChangingProgram program;
  program.instantiate(fills(1, {10, 20}));
  program.update(fills(101, {11, 21}));
  CHECK(program.work() == "11 21 ");
  program.set(2, given(22));
  CHECK(program.work() == "11 22 ");
  program.update(fills(201, {12, 23, 99}));
  CHECK(program.work() == "it was updated from a graph whose nodes are in another order");
}

TEST_CASE("A child graph's nodes can be replaced") {
  ChangingProgram program;
  SampleNodes nodes = fills(1, {10});
  nodes.add(2, NodeType::graph).add(3, NodeType::set, fill_with(40));
  nodes.holder = 2;
  nodes.add(4, NodeType::set, fill_with(20)).add(5, NodeType::set, fill_with(30));
  program.instantiate(nodes);
  CHECK(program.work() == "10 20 30 40 ");
  program.set(4, given(25));
  program.call("cuGraphExecChildGraphNodeSetParams", {CHANGED, 2, SOURCE},
               program.kept(fills(71, {21, 31})));
  CHECK(program.work() == "10 21 31 40 ");
  program.set(5, given(35));
  CHECK(program.work() == "10 21 35 40 ");
  program.call("cuGraphExecChildGraphNodeSetParams", {CHANGED, 2, SOURCE},
               program.kept(fills(71, {21})));
  CHECK(program.work() == "a child graph was replaced by one whose nodes are in another order");
  program.call("cuGraphExecChildGraphNodeSetParams", {CHANGED, 2, SOURCE},
               program.kept(fills(71, {21, 31, 41})));
  CHECK(program.work() == "a child graph was replaced by one that has more nodes");
}

TEST_CASE("Graphs that cannot be captured say why") {
  ChangingProgram program;
  auto with = [&](NodeType type) {
    SampleNodes nodes = fills(1, {10});
    nodes.add(2, type);
    program.instantiate(nodes);
    return program.work();
  };
  CHECK(with(NodeType::empty) == "10 ");
  CHECK(with(NodeType::host) == "it calls the program (a host node)");
  CHECK(with(NodeType::alloc) == "it allocates memory (a node for that)");
  CHECK(with(NodeType::free) == "it frees memory (a node for that)");
  CHECK(with(NodeType::conditional) == "what it does depends on a condition (a conditional node)");
  CHECK(with(NodeType::memory_operations) ==
        "it waits for memory or writes to it (a node of batched operations)");
  CHECK(with(static_cast<NodeType>(99)) == "it has a node of an unknown type");
}

TEST_CASE("Graphs of which something could not be kept are not captured") {
  ChangingProgram program;
  program.call("cuGraphInstantiateWithFlags", {0, SOURCE, 0}, 0, {CHANGED});
  CHECK(program.work() == "its nodes could not be read");
  SampleNodes nodes = fills(1, {10});
  nodes.nodes[0].unreadable = 1;
  program.instantiate(nodes);
  CHECK(program.work() == "what one of its nodes is given could not be read");
  program.instantiate(fills(1, {10}));
  program.set(99, given(1));
  CHECK(program.work() == "a node of it was changed that is not known");
  program.instantiate(fills(1, {10}));
  program.call("cuGraphExecMemsetNodeSetParams", {CHANGED, 1, 0, 0});
  CHECK(program.work() == "what a node of it was changed to could not be kept");
  program.instantiate(given(10));  // what is given to a node is no graph
  CHECK(program.work() == "its nodes could not be read");
  program.instantiate(fills(1, {10}));
  SampleNodes kernel;
  kernel.head.of_node = 1;
  kernel.add(0, NodeType::kernel, GivenKernel{});
  program.set(1, kernel);
  CHECK(program.work() == "a node of it was given what is for another kind of node");
}
