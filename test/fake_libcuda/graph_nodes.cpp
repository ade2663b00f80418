#include "graph_nodes.hpp"

#include <algorithm>
#include <map>

#include "objects.hpp"

namespace fake {
namespace {

struct Graphs {
  std::map<Handle, Graph*> graphs;  // also those that nodes and executables hold
  std::map<Handle, GraphNode*> nodes;
  std::map<const Graph*, std::unique_ptr<Graph>> made;  // by programs
};

Graphs& all() {
  static Graphs* graphs = new Graphs;
  return *graphs;
}

template <typename Value>
Value* find(const std::map<Handle, Value*>& in, Handle handle) {
  const auto found = in.find(handle);
  return found == in.end() ? nullptr : found->second;
}

}  // namespace

Work kernel_work(Handle function, const uint32_t grid[3], const uint32_t block[3],
                 uint32_t shared) {
  Work work = {.does = Does::kernel, .shared = shared};
  if (const char* name = function_name(function)) work.kernel = name;
  std::copy_n(grid, 3, work.grid);
  std::copy_n(block, 3, work.block);
  return work;
}

GraphNode::GraphNode(Graph& of, Work does) : handle(new_handle()), in(of), work(std::move(does)) {
  all().nodes[handle] = this;
}

GraphNode::~GraphNode() { all().nodes.erase(handle); }

Graph& GraphNode::hold_graph() {
  graphs.push_back(std::make_unique<Graph>(this));
  bodies.push_back(graphs.back()->handle);
  return *graphs.back();
}

Graph::Graph(GraphNode* of) : handle(new_handle()), holder(of) { all().graphs[handle] = this; }

Graph::~Graph() { all().graphs.erase(handle); }

GraphNode& Graph::add(Work work) {
  nodes.push_back(std::make_unique<GraphNode>(*this, std::move(work)));
  return *nodes.back();
}

void Graph::copy_from(const Graph& other) {
  std::map<Handle, Handle> copies;  // a node's dependencies were added before it
  for (const auto& node : other.nodes) {
    GraphNode& copy = add(node->work);
    copy.enabled = node->enabled;
    copy.original = node->handle;
    copies[node->handle] = copy.handle;
    for (const Handle before : node->after) copy.after.push_back(copies[before]);
    for (const auto& held : node->graphs) copy.hold_graph().copy_from(*held);
  }
}

bool Graph::has_conditional() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
    return node->work.does == Does::conditional ||
           std::any_of(node->graphs.begin(), node->graphs.end(),
                       [](const auto& held) { return held->has_conditional(); });
  });
}

Graph& new_graph() {
  auto graph = std::make_unique<Graph>();
  Graph& made = *graph;
  all().made[&made] = std::move(graph);
  return made;
}

void destroy_graph(Graph& graph) { all().made.erase(&graph); }

Graph* find_graph(Handle graph) { return find(all().graphs, graph); }

GraphNode* find_node(Handle node) { return find(all().nodes, node); }

}  // namespace fake
