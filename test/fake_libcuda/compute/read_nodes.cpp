// What the nodes of graphs are, and what they were given.
#include <cstring>

#include "../behaviour.hpp"
#include "../graph_nodes.hpp"
#include "../objects.hpp"
#include "../observe.hpp"

namespace fake {
namespace {

uint32_t type_of(const Work& work) {
  switch (work.does) {
    case Does::kernel:
      return kKernelNode;
    case Does::copy:
      return kMemcpyNode;
    case Does::set:
      return kMemsetNode;
    case Does::host:
      return kHostNode;
    case Does::graph:
      return kChildGraphNode;
    case Does::alloc:
      return kAllocNode;
    case Does::free:
      return kFreeNode;
    case Does::conditional:
      return kConditionalNode;
    case Does::other:
      break;
  }
  return work.type;
}

// Hold state_mutex. Null: it is no such node, or nobody can read it.
const Given* given(Handle node, uint32_t type) {
  const GraphNode* known = find_node(node);
  return known && type_of(known->work) == type ? known->work.given.get() : nullptr;
}

template <typename Part>
Status read(Handle node, uint32_t type, void* into, Part Given::*part, uint64_t size) {
  const std::lock_guard lock(state_mutex());
  const Given* known = given(node, type);
  if (!into || !known) return kInvalidValue;
  memcpy(into, &(known->*part), size);
  return kSuccess;
}

Status edges(Handle graph, void* from, void* to, void* data, uint64_t* count) {
  const std::lock_guard lock(state_mutex());
  const Graph* known = find_graph(graph);
  if (!known || !count || !from != !to) return kInvalidValue;
  uint64_t all = 0;
  for (const auto& node : known->nodes)
    for (const Handle before : node->after) {
      if (from && all < *count) {
        static_cast<Handle*>(from)[all] = before;
        static_cast<Handle*>(to)[all] = node->handle;
        if (data) static_cast<uint64_t*>(data)[all] = 0;
      }
      ++all;
    }
  if (!from || *count > all) *count = all;
  return kSuccess;
}

}  // namespace

Status cuGraphNodeGetType(Handle node, void* type) {
  const std::lock_guard lock(state_mutex());
  const GraphNode* known = find_node(node);
  if (!type || !known) return kInvalidValue;
  *static_cast<uint32_t*>(type) = type_of(known->work);
  return kSuccess;
}

Status cuGraphGetEdges(Handle graph, void* from, void* to, uint64_t* count) {
  return edges(graph, from, to, nullptr, count);
}
Status cuGraphGetEdges(Handle graph, void* from, void* to, void* data, uint64_t* count) {
  return edges(graph, from, to, data, count);
}

// Only if a test watches is it known which revision was called: the first has a smaller struct.
Status cuGraphKernelNodeGetParams(Handle node, void* parameters) {
  constexpr uint64_t kFirst = 56;
  const char* symbol = current_call().symbol;
  const bool is_first = symbol && !strcmp(symbol, "cuGraphKernelNodeGetParams");
  return read(node, kKernelNode, parameters, &Given::kernel,
              is_first ? kFirst : sizeof(KernelNodeParams));
}

// Nothing is set: all zeroes, as by the real driver.
Status cuGraphKernelNodeGetAttribute(Handle node, uint32_t attribute, void* value) {
  const std::lock_guard lock(state_mutex());
  const GraphNode* known = find_node(node);
  if (!value || !known || known->work.does != Does::kernel) return kInvalidValue;
  const auto set = known->work.attributes.find(attribute);
  memset(value, 0, sizeof LaunchAttribute::value);
  if (set != known->work.attributes.end()) memcpy(value, set->second.data(), set->second.size());
  return kSuccess;
}

Status cuGraphKernelNodeSetAttribute(Handle node, uint32_t attribute, void* value) {
  const std::lock_guard lock(state_mutex());
  GraphNode* known = find_node(node);
  if (!value || !known || known->work.does != Does::kernel) return kInvalidValue;
  auto& set = known->work.attributes[attribute];
  memcpy(set.data(), value, set.size());
  return kSuccess;
}

Status cuGraphMemcpyNodeGetParams(Handle node, void* copy) {
  return read(node, kMemcpyNode, copy, &Given::copy, sizeof(Memcpy3D));
}
Status cuGraphMemsetNodeGetParams(Handle node, void* fill) {
  return read(node, kMemsetNode, fill, &Given::set, sizeof(MemsetNodeParams));
}
Status cuGraphEventRecordNodeGetEvent(Handle node, Handle* event) {
  return read(node, kRecordNode, event, &Given::event, sizeof(Handle));
}
Status cuGraphEventWaitNodeGetEvent(Handle node, Handle* event) {
  return read(node, kWaitNode, event, &Given::event, sizeof(Handle));
}

}  // namespace fake
