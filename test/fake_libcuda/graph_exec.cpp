// Graphs that are instantiated: copies of graphs, which are changed and launched.
#include <algorithm>
#include <map>
#include <utility>

#include "behaviour.hpp"
#include "call_log.hpp"
#include "gpu.hpp"
#include "node_work.hpp"
#include "objects.hpp"
#include "observe.hpp"
#include "settings.hpp"

namespace fake {
namespace {

struct Executable {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::map<Handle, GraphNode*> nodes = {};  // by the nodes that they were copied from
};

std::map<Handle, Executable>& executables() {
  static auto* all = new std::map<Handle, Executable>;
  return *all;
}

Executable* find(Handle executable) {
  const auto found = executables().find(executable);
  return found == executables().end() ? nullptr : &found->second;
}

void index(Executable& executable, const Graph& graph) {
  for (const auto& node : graph.nodes) {
    executable.nodes[node->original] = node.get();
    for (const auto& held : node->graphs) index(executable, *held);
  }
}

Status instantiate(Handle* executable, Handle graph) {
  if (!executable) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const Graph* original = find_graph(graph);
  if (!original) return kInvalidValue;
  Executable made;
  made.graph->copy_from(*original);
  index(made, *made.graph);
  executables()[*executable = new_handle()] = std::move(made);
  return kSuccess;
}

// Whether they hold nodes of the same kinds; here the order says which node is which.
bool are_alike(const Graph& a, const Graph& b) {
  const auto same_graphs = [](const auto& one, const auto& other) {
    return are_alike(*one, *other);
  };
  return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
                    [&](const auto& one, const auto& other) {
                      return one->work.does == other->work.does &&
                             std::equal(one->graphs.begin(), one->graphs.end(),
                                        other->graphs.begin(), other->graphs.end(), same_graphs);
                    });
}

// The nodes stay the same, and disabled if they are: only what they do changes.
void become(Graph& graph, const Graph& other) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    GraphNode& node = *graph.nodes[i];
    node.work = other.nodes[i]->work;
    for (size_t j = 0; j < node.graphs.size(); ++j)
      become(*node.graphs[j], *other.nodes[i]->graphs[j]);
  }
}

Status update(Handle executable, Handle graph) {
  const std::lock_guard lock(state_mutex());
  Executable* known = find(executable);
  const Graph* wanted = find_graph(graph);
  if (!known || !wanted) return kInvalidValue;
  if (!are_alike(*known->graph, *wanted)) return kGraphExecUpdateFailure;
  become(*known->graph, *wanted);
  return kSuccess;
}

GraphNode* node_of(Handle executable, Handle node) {
  Executable* known = find(executable);
  if (!known || !find_node(node)) return nullptr;  // it must not be gone
  const auto found = known->nodes.find(node);
  return found == known->nodes.end() ? nullptr : found->second;
}

Status set_child(GraphNode& node, Handle child) {
  const Graph* wanted = find_graph(child);
  if (!wanted || node.work.does != Does::graph) return kInvalidValue;
  if (!are_alike(*node.graphs.front(), *wanted)) return kGraphExecUpdateFailure;
  become(*node.graphs.front(), *wanted);
  return kSuccess;
}

using Read = Status (*)(const void* parameters, Work& work);

Status set(Handle executable, Handle node, Read read, const void* parameters) {
  const std::lock_guard lock(state_mutex());
  GraphNode* known = node_of(executable, node);
  Work work;
  if (!known) return kInvalidValue;
  if (const Status bad = read(parameters, work)) return bad;
  if (work.does != known->work.does) return kInvalidValue;
  if (work.does == Does::graph)
    return set_child(*known, static_cast<const GraphNodeParams*>(parameters)->child);
  work.attributes = known->work.attributes;
  known->work = std::move(work);
  return kSuccess;
}

void collect(const Graph& graph, bool in_body, std::vector<const Work*>& once,
             std::vector<const Work*>& in_bodies) {
  for (const auto& node : graph.nodes) {
    if (!node->enabled) continue;
    const Does does = node->work.does;
    if (does != Does::graph) (in_body ? in_bodies : once).push_back(&node->work);
    for (const auto& held : node->graphs)
      collect(*held, in_body || does == Does::conditional, once, in_bodies);
  }
}

}  // namespace

const Graph* find_executable(Handle executable) {
  const Executable* known = find(executable);
  return known ? known->graph.get() : nullptr;
}

Status cuGraphInstantiate(Handle* executable, Handle graph, Handle*, void*, uint64_t) {
  return instantiate(executable, graph);
}
Status cuGraphInstantiateWithFlags(Handle* executable, Handle graph, uint64_t) {
  return instantiate(executable, graph);
}
Status cuGraphInstantiateWithParams(Handle* executable, Handle graph, void*) {
  return instantiate(executable, graph);
}

Status cuGraphExecUpdate(Handle executable, Handle graph, void*) {
  return update(executable, graph);
}
Status cuGraphExecUpdate(Handle executable, Handle graph, Handle*, void*) {
  return update(executable, graph);
}

Status cuGraphExecDestroy(Handle executable) {
  const std::lock_guard lock(state_mutex());
  return executables().erase(executable) ? kSuccess : kInvalidValue;
}

Status cuGraphExecKernelNodeSetParams(Handle executable, Handle node, void* parameters) {
  return set(executable, node, read_kernel, parameters);
}
Status cuGraphExecMemcpyNodeSetParams(Handle executable, Handle node, void* copy, Handle) {
  return set(executable, node, read_copy, copy);
}
Status cuGraphExecMemsetNodeSetParams(Handle executable, Handle node, void* fill, Handle) {
  return set(executable, node, read_fill, fill);
}
Status cuGraphExecHostNodeSetParams(Handle executable, Handle node, void* parameters) {
  return set(executable, node, read_host, parameters);
}
Status cuGraphExecNodeSetParams(Handle executable, Handle node, void* parameters) {
  return set(executable, node, read_node, parameters);
}
Status cuGraphExecChildGraphNodeSetParams(Handle executable, Handle node, Handle child) {
  const std::lock_guard lock(state_mutex());
  GraphNode* known = node_of(executable, node);
  return known ? set_child(*known, child) : kInvalidValue;
}

Status cuGraphNodeSetEnabled(Handle executable, Handle node, uint32_t enabled) {
  const std::lock_guard lock(state_mutex());
  GraphNode* known = node_of(executable, node);
  if (!known) return kInvalidValue;
  const Does does = known->work.does;
  if (does != Does::kernel && does != Does::copy && does != Does::set) return kInvalidValue;
  known->enabled = enabled != 0;
  return kSuccess;
}

Status cuGraphLaunch(Handle executable, Handle stream) {
  if (const auto status = capture_launch(stream, executable)) return *status;
  std::vector<HostNodeParams> host;
  std::vector<Work> computed;
  {
    const std::lock_guard lock(state_mutex());
    const Graph* graph = find_executable(executable);
    if (!graph) return kInvalidValue;
    std::vector<const Work*> once, in_bodies;
    collect(*graph, false, once, in_bodies);
    for (const Work* work : once) {
      if (work->does == Does::host) host.push_back(work->host);
    }
    if (gpu_is_watched) gpu_does_graph(once, stream);
    for (const Work* work : once)
      if (work->action) computed.push_back(*work);
    if (!settings().log_directory.empty()) call_ran(text_of_ran(once, in_bodies));
  }
  for (const Work& work : computed)
    if (const Status bad = gpu_computes(work)) return bad;
  for (const HostNodeParams& node : host)
    reinterpret_cast<void (*)(void*)>(node.function)(node.data);
  return kSuccess;
}

}  // namespace fake
