// Launches, and graphs of launches.
#include <map>
#include <set>
#include <vector>

#include "behaviour.hpp"
#include "objects.hpp"
#include "state.hpp"

namespace fake {
namespace {

struct Graphs {
  std::map<Handle, std::vector<Handle>> live;  // and the nodes of each
  std::set<Handle> executables;
};

Graphs& graphs() {
  static Graphs* all = new Graphs;
  return *all;
}

Status launch(Handle function, const uint32_t grid[3], const uint32_t block[3], Handle stream) {
  if (!function_name(function)) return kInvalidHandle;
  for (int i = 0; i < 3; ++i) {
    if (grid[i] == 0 || block[i] == 0) return kInvalidValue;
  }
  if (Handle graph = captured_graph(stream)) {
    const std::lock_guard lock(state_mutex());
    add_graph_node(graph);
  }
  return kSuccess;
}

Status instantiate(Handle* executable, Handle graph) {
  if (!executable) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  if (!graphs().live.contains(graph)) return kInvalidValue;
  graphs().executables.insert(*executable = new_handle());
  return kSuccess;
}

}  // namespace

Handle new_graph() {
  Handle graph = new_handle();
  graphs().live[graph] = {};
  return graph;
}

void add_graph_node(Handle graph) { graphs().live[graph].push_back(new_handle()); }

Status cuLaunchKernel(Handle function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                      uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t, Handle stream,
                      void*, void*) {
  const uint32_t grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  return launch(function, grid, block, stream);
}

Status cuLaunchCooperativeKernel(Handle function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                 uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t,
                                 Handle stream, void*) {
  const uint32_t grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  return launch(function, grid, block, stream);
}

Status cuLaunchKernelEx(void* config, Handle function, void*, void*) {
  if (!config) return kInvalidValue;
  const auto& wanted = *static_cast<const LaunchConfig*>(config);
  return launch(function, wanted.grid, wanted.block, wanted.stream);
}

Status cuGraphCreate(Handle* graph, uint32_t flags) {
  if (!graph || flags != 0) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  *graph = new_graph();
  return kSuccess;
}

Status cuGraphDestroy(Handle graph) {
  const std::lock_guard lock(state_mutex());
  return graphs().live.erase(graph) ? kSuccess : kInvalidValue;
}

Status cuGraphAddKernelNode(Handle* node, Handle graph, void*, uint64_t, void* parameters) {
  if (!node || !parameters) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const auto found = graphs().live.find(graph);
  if (found == graphs().live.end()) return kInvalidValue;
  add_graph_node(graph);
  *node = found->second.back();
  return kSuccess;
}

Status cuGraphGetNodes(Handle graph, Handle* nodes, uint64_t* count) {
  if (!count) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const auto found = graphs().live.find(graph);
  if (found == graphs().live.end()) return kInvalidValue;
  const uint64_t all = found->second.size();
  for (uint64_t i = 0; nodes && i < *count && i < all; ++i) nodes[i] = found->second[i];
  if (!nodes || *count > all) *count = all;
  return kSuccess;
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

Status cuGraphExecDestroy(Handle executable) {
  const std::lock_guard lock(state_mutex());
  return graphs().executables.erase(executable) ? kSuccess : kInvalidValue;
}

Status cuGraphLaunch(Handle executable, Handle) {
  const std::lock_guard lock(state_mutex());
  return graphs().executables.contains(executable) ? kSuccess : kInvalidValue;
}

}  // namespace fake
