// What the nodes of a graph are given, as the library inside a process keeps it (struct ci_nodes).
// What the process wrote is hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cudabpf/taped_process.hpp"
#include "util/result.hpp"

namespace cudabpf::taping {

enum class NodeType : std::uint32_t {  // CUgraphNodeType
  kernel,
  copy,
  set,
  host,
  graph,
  empty,
  wait,
  record,
  signal_outside,
  wait_outside,
  alloc,
  free,
  memory_operations,
  conditional,
};

struct KeptNode {
  std::uint64_t handle = 0;
  NodeType type = NodeType::empty;
  std::size_t holder = 0;  // the number of the node that holds its graph, from 1; 0: none does
  bool unreadable = false;
  std::string given;  // the driver's struct
  std::string parameters, attributes;
};

struct KeptNodes {
  bool of_node = false;  // what a call gives one node; else what a graph holds
  std::vector<KeptNode> nodes;
  std::vector<std::pair<std::size_t, std::size_t>> edges;  // indices: the second comes after
};

// An error says why it cannot be known: "its nodes could not be read".
Result<KeptNodes> nodes_in(const std::optional<Payload>& payload);

// Their indices, so that none comes before what it depends on: those of a child graph in place of
// the node that holds it, others in the graph's own order.
Result<std::vector<std::size_t>> order_of(const KeptNodes& kept);

}  // namespace cudabpf::taping
