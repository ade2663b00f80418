// What graphs hold. Hold state_mutex for all of it.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compute/compute.hpp"
#include "types.hpp"

namespace fake {

enum class Does : uint8_t { kernel, copy, set, alloc, free, host, graph, conditional, other };

// What a node was given, for the functions that read nodes.
struct Given {
  KernelNodeParams kernel = {};
  std::vector<unsigned char> parameters = {};  // of the kernel, if it is known,
  std::vector<void*> pointers = {};            // and where each lies
  Memcpy3D copy = {};
  MemsetNodeParams set = {};
  Handle event = nullptr;
};
using Attributes = std::map<uint32_t, std::array<unsigned char, 64>>;  // by CUlaunchAttributeID

// What a node does, or what a stream is given to do.
struct Work {
  Does does = Does::other;
  std::string kernel = {};
  uint32_t grid[3] = {}, block[3] = {}, shared = 0;
  uint64_t size = 0;  // of a copy, a fill or an allocation
  HostNodeParams host = {};
  Action action = {};                       // empty: nothing that can be seen
  uint32_t type = kEmptyNode;               // where `does` does not say it
  std::shared_ptr<const Given> given = {};  // null: nobody can read it
  Attributes attributes = {};
};

Work kernel_work(Handle function, const uint32_t grid[3], const uint32_t block[3], uint32_t shared);
inline Work sized_work(Does does, uint64_t size, Action action = {},
                       std::shared_ptr<const Given> given = {}) {
  return {.does = does, .size = size, .action = std::move(action), .given = std::move(given)};
}

struct Graph;

struct GraphNode {
  GraphNode(Graph& of, Work does);
  GraphNode(const GraphNode&) = delete;
  GraphNode& operator=(const GraphNode&) = delete;
  ~GraphNode();
  Graph& hold_graph();  // one more

  const Handle handle;
  Graph& in;
  Work work;
  bool enabled = true;
  Handle original = nullptr;                   // the node that it was copied from
  std::vector<std::unique_ptr<Graph>> graphs;  // a child graph, or a conditional node's bodies
  std::vector<Handle> bodies;                  // the handles of these, for the program to read
  std::vector<Handle> after;                   // the nodes that it depends on
};

struct Graph {
  explicit Graph(GraphNode* of = nullptr);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  GraphNode& add(Work work);
  void copy_from(const Graph& other);
  bool has_conditional() const;

  const Handle handle;
  GraphNode* const holder;  // null: a program made it, and destroys it
  std::vector<std::unique_ptr<GraphNode>> nodes;
};

Graph& new_graph();
void destroy_graph(Graph& graph);  // which no node holds

// Null if there is none with this handle.
Graph* find_graph(Handle graph);
GraphNode* find_node(Handle node);
const Graph* find_executable(Handle executable);  // what it holds

}  // namespace fake
