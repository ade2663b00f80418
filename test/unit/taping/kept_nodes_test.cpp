#include "taping/kept_nodes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <string>

#include "support/kept_graphs.hpp"

using namespace cudabpf;
using namespace cudabpf::taping;

namespace {

std::vector<std::size_t> ordered(const SampleNodes& nodes) {
  auto kept = nodes_in(nodes.payload());
  REQUIRE(kept);
  auto order = order_of(*kept);
  REQUIRE(order);
  return *order;
}

SampleNodes sample_nodes() {
  SampleNodes nodes;
  nodes.add(11, NodeType::kernel, GivenKernel{}, "parameters", std::string(72, 'a'));
  nodes.add(12, NodeType::set, GivenSet{});
  nodes.add(13, NodeType::graph);
  nodes.edge(11, 12);
  nodes.holder = 3;
  nodes.add(14, NodeType::record, std::uint64_t{7});
  return nodes;
}

std::string fault_of_spoilt(const std::function<void(SampleNodes&)>& spoil) {
  SampleNodes nodes = sample_nodes();
  spoil(nodes);
  auto kept = nodes_in(nodes.payload());
  return kept ? "" : kept.error().message;
}

}  // namespace

TEST_CASE("What nodes are given is read as it was kept") {
  auto kept = nodes_in(sample_nodes().payload());
  REQUIRE(kept);
  REQUIRE(kept->nodes.size() == 4);
  CHECK_FALSE(kept->of_node);
  CHECK(kept->nodes[0].handle == 11);
  CHECK(kept->nodes[0].given.size() == 72);
  CHECK(kept->nodes[0].parameters == "parameters");
  CHECK(kept->nodes[0].attributes == std::string(72, 'a'));
  CHECK(kept->nodes[1].type == NodeType::set);
  CHECK(kept->nodes[3].holder == 3);
  CHECK(kept->nodes[3].given == std::string("\7\0\0\0\0\0\0\0", 8));
  CHECK(kept->edges == std::vector<std::pair<std::size_t, std::size_t>>{{0, 1}});
}

TEST_CASE("What was kept of nodes may be anything") {
  const std::string wrong = "what was kept of its nodes makes no sense";
  const std::function<void(SampleNodes&)> spoilings[] = {
      [](SampleNodes& nodes) { nodes.head.count = 5; },
      [](SampleNodes& nodes) { nodes.head.count = ~0U; },
      [](SampleNodes& nodes) { nodes.head.of_node = 1; },
      [](SampleNodes& nodes) { nodes.nodes[0].given = 71; },
      [](SampleNodes& nodes) { nodes.nodes[0].given = ~0U; },
      [](SampleNodes& nodes) { nodes.nodes[0].parameters = ~0U; },
      [](SampleNodes& nodes) { nodes.nodes[0].parameters = 4096; },
      [](SampleNodes& nodes) { nodes.nodes[0].attributes = 71; },
      [](SampleNodes& nodes) { nodes.nodes[0].attributes = 72 * 65; },
      [](SampleNodes& nodes) { nodes.nodes[0].type = 2; },
      [](SampleNodes& nodes) { nodes.nodes[3].holder = 1; },  // no graph
      [](SampleNodes& nodes) { nodes.nodes[3].holder = 4; },  // itself
      [](SampleNodes& nodes) { nodes.nodes[3].holder = ~0U; },
      [](SampleNodes& nodes) { nodes.nodes[1].handle = 11; },
      [](SampleNodes& nodes) { nodes.edge(11, 99); },
      [](SampleNodes& nodes) { nodes.edge(11, 14); },  // into the child graph
  };
  for (std::size_t i = 0; i < std::size(spoilings); i++) {
    INFO("spoiling " << i);
    CHECK(fault_of_spoilt(spoilings[i]) == wrong);
  }
  CHECK(fault_of_spoilt([](SampleNodes& nodes) { nodes.head.fault = abi::CI_NODES_TOO_MANY; }) ==
        "it is too large");
  CHECK(fault_of_spoilt([](SampleNodes& nodes) { nodes.head.fault = 77; }) ==
        "its nodes could not be read");
}

TEST_CASE("What was kept of nodes may end anywhere") {
  Payload whole = sample_nodes().payload();
  for (std::size_t size = 0; size < whole.bytes.size(); size++) {
    Payload part = whole;
    part.bytes.resize(size);
    CHECK_FALSE(nodes_in(part));
  }
  whole.state = abi::CI_UNREADABLE;
  CHECK_FALSE(nodes_in(whole));
  CHECK_FALSE(nodes_in(std::nullopt));
}

TEST_CASE("Nodes come after what they depend on, else in the graph's order") {
  SampleNodes nodes;
  for (std::uint64_t handle : {1, 2, 3, 4}) nodes.add(handle, NodeType::empty);
  CHECK(ordered(nodes) == std::vector<std::size_t>{0, 1, 2, 3});
  nodes.edge(4, 1).edge(1, 3);
  CHECK(ordered(nodes) == std::vector<std::size_t>{1, 3, 0, 2});
}

TEST_CASE("A child graph's nodes come where the node is that holds it") {
  SampleNodes nodes;
  nodes.add(1, NodeType::graph).add(2, NodeType::empty).add(3, NodeType::graph);
  nodes.edge(2, 1);
  nodes.holder = 1;
  nodes.add(4, NodeType::empty).add(5, NodeType::graph);
  nodes.holder = 3;
  nodes.add(6, NodeType::empty);
  nodes.holder = 5;
  nodes.add(7, NodeType::empty);
  CHECK(ordered(nodes) == std::vector<std::size_t>{1, 0, 3, 4, 6, 2, 5});
}

TEST_CASE("Nodes that wait for each other have no order") {
  SampleNodes nodes;
  nodes.add(1, NodeType::empty).add(2, NodeType::graph);
  nodes.holder = 2;
  nodes.add(3, NodeType::empty).add(4, NodeType::empty);
  nodes.edge(3, 4).edge(4, 3);
  auto kept = nodes_in(nodes.payload());
  REQUIRE(kept);
  auto order = order_of(*kept);
  REQUIRE_FALSE(order);
  CHECK(order.error().message == "its nodes wait for each other");
}

TEST_CASE("Graphs within graphs may be as deep as there are nodes") {
  SampleNodes nodes;
  for (std::uint32_t i = 0; i < CI_MAX_NODES; i++) {
    nodes.holder = i;
    nodes.add(i + 1, NodeType::graph);
  }
  CHECK(ordered(nodes).size() == CI_MAX_NODES);
}
