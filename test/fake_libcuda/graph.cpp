// Graphs: they are made, copied, and get nodes.
#include <utility>

#include "behaviour.hpp"
#include "node_work.hpp"
#include "objects.hpp"

namespace fake {
namespace {

struct After {  // the nodes that one depends on, as a program gives them
  const void* nodes;
  uint64_t count;
};

// Adds a node that does this, if it is all right.
Status add(Handle* node, Handle graph, After after, Status checked, Work work) {
  Graph* to = find_graph(graph);
  if (!node || !to || (after.count && !after.nodes)) return kInvalidValue;
  if (checked != kSuccess) return checked;
  const auto* before = static_cast<const Handle*>(after.nodes);
  GraphNode& added = to->add(std::move(work));
  added.after.assign(before, before + after.count);
  *node = added.handle;
  return kSuccess;
}

Status add_plain(Handle* node, Handle graph, After after, Work work) {
  const std::lock_guard lock(state_mutex());
  return add(node, graph, after, kSuccess, std::move(work));
}

Status add_event(Handle* node, Handle graph, After after, uint32_t type, Handle event) {
  Given given;
  given.event = event;
  return add_plain(node, graph, after,
                   {.type = type, .given = std::make_shared<const Given>(std::move(given))});
}

using Read = Status (*)(const void* parameters, Work& work);

Status add_read(Handle* node, Handle graph, After after, Read read, const void* parameters) {
  const std::lock_guard lock(state_mutex());
  Work work;
  const Status checked = read(parameters, work);
  return add(node, graph, after, checked, std::move(work));
}

// Whether it is the graph, or holds it.
bool is_or_holds(const Graph& outer, const Graph* graph) {
  while (graph && graph != &outer) graph = graph->holder ? &graph->holder->in : nullptr;
  return graph;
}

Status add_child(Handle* node, Handle graph, After after, Handle child) {
  const Graph* held = find_graph(child);
  if (!held || is_or_holds(*held, find_graph(graph))) return kInvalidValue;
  if (held->has_conditional()) return kNotSupported;
  if (const Status bad = add(node, graph, after, kSuccess, {.does = Does::graph})) return bad;
  find_node(*node)->hold_graph().copy_from(*held);
  return kSuccess;
}

void make_bodies(GraphNode& node, ConditionalNodeParams& wanted) {
  for (uint32_t i = 0; i < wanted.count; ++i) node.hold_graph();
  wanted.bodies = node.bodies.data();
}

// Also fills in what the node is given.
Status add_node(Handle* node, Handle graph, After after, void* parameters) {
  const std::lock_guard lock(state_mutex());
  Work work;
  const Status checked = read_node(parameters, work);
  auto* wanted = static_cast<GraphNodeParams*>(parameters);
  if (checked == kSuccess && work.does == Does::graph)
    return add_child(node, graph, after, wanted->child);
  if (const Status bad = add(node, graph, after, checked, std::move(work))) return bad;
  if (wanted->type == kConditionalNode) make_bodies(*find_node(*node), wanted->conditional);
  if (wanted->type == kAllocNode) wanted->alloc.pointer = new_device_range(wanted->alloc.size);
  return kSuccess;
}

Status set(Handle node, Read read, const void* parameters) {
  const std::lock_guard lock(state_mutex());
  GraphNode* known = find_node(node);
  Work work;
  if (!known) return kInvalidValue;
  if (const Status bad = read(parameters, work)) return bad;
  if (work.does != known->work.does) return kInvalidValue;
  if (work.does == Does::graph) {
    const Graph* child = find_graph(static_cast<const GraphNodeParams*>(parameters)->child);
    if (!child || is_or_holds(*child, &known->in)) return kInvalidValue;
    known->graphs.clear();
    known->bodies.clear();
    known->hold_graph().copy_from(*child);
  }
  work.attributes = known->work.attributes;
  known->work = std::move(work);
  return kSuccess;
}

}  // namespace

Status cuGraphCreate(Handle* graph, uint32_t flags) {
  if (!graph || flags != 0) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  *graph = new_graph().handle;
  return kSuccess;
}

Status cuGraphDestroy(Handle graph) {
  const std::lock_guard lock(state_mutex());
  Graph* known = find_graph(graph);
  if (!known || known->holder) return kInvalidValue;
  destroy_graph(*known);
  return kSuccess;
}

Status cuGraphClone(Handle* clone, Handle graph) {
  if (!clone) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const Graph* original = find_graph(graph);
  if (!original) return kInvalidValue;
  if (original->has_conditional()) return kNotSupported;
  Graph& made = new_graph();
  made.copy_from(*original);
  *clone = made.handle;
  return kSuccess;
}

Status cuGraphNodeFindInClone(Handle* node, Handle original, Handle clone) {
  if (!node) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const Graph* in = find_graph(clone);
  if (!in) return kInvalidValue;
  for (const auto& copy : in->nodes) {
    if (copy->original != original) continue;
    *node = copy->handle;
    return kSuccess;
  }
  return kInvalidValue;
}

Status cuGraphChildGraphNodeGetGraph(Handle node, Handle* graph) {
  const std::lock_guard lock(state_mutex());
  const GraphNode* holder = find_node(node);
  if (!graph || !holder || holder->work.does != Does::graph) return kInvalidValue;
  *graph = holder->graphs.front()->handle;
  return kSuccess;
}

Status cuGraphGetNodes(Handle graph, Handle* nodes, uint64_t* count) {
  if (!count) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const Graph* known = find_graph(graph);
  if (!known) return kInvalidValue;
  const uint64_t all = known->nodes.size();
  for (uint64_t i = 0; nodes && i < *count && i < all; ++i) nodes[i] = known->nodes[i]->handle;
  if (!nodes || *count > all) *count = all;
  return kSuccess;
}

Status cuGraphDestroyNode(Handle node) {
  const std::lock_guard lock(state_mutex());
  const GraphNode* known = find_node(node);
  if (!known) return kInvalidValue;
  std::erase_if(known->in.nodes, [&](const auto& other) { return other.get() == known; });
  return kSuccess;
}

Status cuGraphAddKernelNode(Handle* node, Handle graph, void* after, uint64_t count,
                            void* parameters) {
  return add_read(node, graph, {after, count}, read_kernel, parameters);
}
Status cuGraphAddMemcpyNode(Handle* node, Handle graph, void* after, uint64_t count, void* copy,
                            Handle) {
  return add_read(node, graph, {after, count}, read_copy, copy);
}
Status cuGraphAddMemsetNode(Handle* node, Handle graph, void* after, uint64_t count, void* fill,
                            Handle) {
  return add_read(node, graph, {after, count}, read_fill, fill);
}
Status cuGraphAddHostNode(Handle* node, Handle graph, void* after, uint64_t count,
                          void* parameters) {
  return add_read(node, graph, {after, count}, read_host, parameters);
}
Status cuGraphAddChildGraphNode(Handle* node, Handle graph, void* after, uint64_t count,
                                Handle child) {
  const std::lock_guard lock(state_mutex());
  return add_child(node, graph, {after, count}, child);
}
Status cuGraphAddEmptyNode(Handle* node, Handle graph, void* after, uint64_t count) {
  return add_plain(node, graph, {after, count}, {});
}
Status cuGraphAddEventRecordNode(Handle* node, Handle graph, void* after, uint64_t count,
                                 Handle event) {
  return add_event(node, graph, {after, count}, kRecordNode, event);
}
Status cuGraphAddEventWaitNode(Handle* node, Handle graph, void* after, uint64_t count,
                               Handle event) {
  return add_event(node, graph, {after, count}, kWaitNode, event);
}
Status cuGraphAddExternalSemaphoresSignalNode(Handle* node, Handle graph, void* after,
                                              uint64_t count, void*) {
  return add_plain(node, graph, {after, count}, {.type = kSignalOutsideNode});
}
Status cuGraphAddExternalSemaphoresWaitNode(Handle* node, Handle graph, void* after, uint64_t count,
                                            void*) {
  return add_plain(node, graph, {after, count}, {.type = kWaitOutsideNode});
}
Status cuGraphAddBatchMemOpNode(Handle* node, Handle graph, void* after, uint64_t count, void*) {
  return add_plain(node, graph, {after, count}, {.type = kMemoryOperationsNode});
}
Status cuGraphAddMemAllocNode(Handle* node, Handle graph, void* after, uint64_t count,
                              void* parameters) {
  auto* wanted = static_cast<AllocNodeParams*>(parameters);
  const std::lock_guard lock(state_mutex());
  const Status checked = wanted && wanted->size ? kSuccess : kInvalidValue;
  const uint64_t size = wanted ? wanted->size : 0;
  if (const Status bad = add(node, graph, {after, count}, checked, sized_work(Does::alloc, size)))
    return bad;
  wanted->pointer = new_device_range(size);
  return kSuccess;
}
Status cuGraphAddMemFreeNode(Handle* node, Handle graph, void* after, uint64_t count, DevicePtr) {
  return add_plain(node, graph, {after, count}, {.does = Does::free});
}
Status cuGraphAddNode(Handle* node, Handle graph, void* after, uint64_t count, void* parameters) {
  return add_node(node, graph, {after, count}, parameters);
}
Status cuGraphAddNode(Handle* node, Handle graph, void*, void* after, uint64_t count,
                      void* parameters) {
  return add_node(node, graph, {after, count}, parameters);
}

Status cuGraphKernelNodeSetParams(Handle node, void* parameters) {
  return set(node, read_kernel, parameters);
}
Status cuGraphMemcpyNodeSetParams(Handle node, void* copy) { return set(node, read_copy, copy); }
Status cuGraphMemsetNodeSetParams(Handle node, void* fill) { return set(node, read_fill, fill); }
Status cuGraphHostNodeSetParams(Handle node, void* parameters) {
  return set(node, read_host, parameters);
}
Status cuGraphNodeSetParams(Handle node, void* parameters) {
  return set(node, read_node, parameters);
}

}  // namespace fake
