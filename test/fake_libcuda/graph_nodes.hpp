// What graphs hold. Hold state_mutex for all of it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compute/compute.hpp"
#include "types.hpp"

namespace fake {

enum class Does : uint8_t { kernel, copy, set, alloc, free, host, graph, conditional, other };

// What a node does, or what a stream is given to do.
struct Work {
  Does does = Does::other;
  std::string kernel = {};
  uint32_t grid[3] = {}, block[3] = {}, shared = 0;
  uint64_t size = 0;  // of a copy, a fill or an allocation
  HostNodeParams host = {};
  Action action = {};  // empty: nothing that can be seen
};

Work kernel_work(Handle function, const uint32_t grid[3], const uint32_t block[3], uint32_t shared);
inline Work sized_work(Does does, uint64_t size, Action action = {}) {
  return {.does = does, .size = size, .action = std::move(action)};
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
