// The statements of fake_calls about graphs and captures.
#include "calls.hpp"

namespace workload {
namespace {

constexpr DevicePtr kFrom = 0x7f1000000000, kTo = 0x7f2000000000;  // nothing looks at what is there

void do_nothing(void*) {}

uint32_t number(A a, size_t i) { return static_cast<uint32_t>(a.word(i)); }

// F GX GY GZ BX BY BZ SHARED
KernelNodeParams kernel_at(A a, size_t at) {
  KernelNodeParams node = {};
  node.function = a.handle(at);
  for (size_t i = 0; i < 3; ++i) {
    node.grid[i] = number(a, at + 1 + i);
    node.block[i] = number(a, at + 4 + i);
  }
  node.shared = number(a, at + 7);
  return node;
}

// SIZE
Memcpy3D copy_at(A a, size_t at) {
  Memcpy3D copy = {};
  constexpr uint32_t kDevice = 2;
  copy.src_type = copy.dst_type = kDevice;
  copy.src_device = kFrom;
  copy.dst_device = kTo;
  copy.width = copy.src_pitch = copy.dst_pitch = a.word(at);
  copy.height = copy.depth = copy.src_height = copy.dst_height = 1;
  return copy;
}

// ELEMENT-SIZE WIDTH HEIGHT
MemsetNodeParams fill_at(A a, size_t at) {
  const uint32_t element_size = number(a, at);
  return {kTo, element_size * a.word(at + 1), 0, element_size, a.word(at + 1), a.word(at + 2)};
}

// SIZE
AllocNodeParams alloc_at(A a, size_t at) {
  AllocNodeParams node = {};
  node.size = a.word(at);
  return node;
}

// KIND, and what such a node needs.
GraphNodeParams node_at(A a, size_t at) {
  static const std::map<std::string, uint32_t> kinds = {
      {"kernel", kKernelNode}, {"copy", kMemcpyNode},      {"set", kMemsetNode},
      {"host", kHostNode},     {"child", kChildGraphNode}, {"empty", kEmptyNode},
      {"alloc", kAllocNode},   {"free", kFreeNode},        {"conditional", kConditionalNode}};
  const auto kind = kinds.find(a.text(at));
  if (kind == kinds.end()) refuse(a.statement(), "there are no such nodes");
  GraphNodeParams node = {};
  node.type = kind->second;
  if (node.type == kKernelNode) node.kernel = kernel_at(a, at + 1);
  if (node.type == kMemcpyNode) node.copy.copy = copy_at(a, at + 1);
  if (node.type == kMemsetNode) node.set = fill_at(a, at + 1);
  if (node.type == kHostNode) node.host.function = reinterpret_cast<void*>(do_nothing);
  if (node.type == kChildGraphNode) node.child = a.handle(at + 1);
  if (node.type == kAllocNode) node.alloc = alloc_at(a, at + 1);
  if (node.type == kFreeNode) node.freed = kTo;
  if (node.type == kConditionalNode) node.conditional.count = static_cast<uint32_t>(a.count() - at);
  return node;
}

// Where a call writes the handle of the node that it adds: it has a name if one is at i.
Handle* node_named(A a, size_t i) {
  static Handle unnamed;
  return a.has(i) ? a.out_handle(i) : &unnamed;
}

// Gives the bodies of a conditional node their names, the last words of the statement.
Status named_bodies(A a, size_t from, const GraphNodeParams& node, Status status) {
  for (size_t i = from; status == kSuccess && i <= a.count(); ++i)
    *a.out_handle(i) = node.conditional.bodies[i - from];
  return status;
}

// N G KIND …
Status add_node(D d, A a) {
  GraphNodeParams node = node_at(a, 3);
  const Status status = d.cuGraphAddNode(a.out_handle(1), a.handle(2), nullptr, nullptr, 0, &node);
  return node.type == kConditionalNode ? named_bodies(a, 4, node, status) : status;
}

template <typename... Types>
Status call_old(D d, const char* symbol, Types... arguments) {
  return reinterpret_cast<Status (*)(Types...)>(d.exported(symbol))(arguments...);
}

// The first versions of functions that have another one now.
Status add_node_v1(D d, A a) {
  GraphNodeParams node = node_at(a, 3);
  const Status status = call_old(d, "cuGraphAddNode", a.out_handle(1), a.handle(2),
                                 static_cast<const Handle*>(nullptr), uint64_t{0}, &node);
  return node.type == kConditionalNode ? named_bodies(a, 4, node, status) : status;
}

Status add_kernel_v1(D d, A a) {
  const KernelNodeParams node = kernel_at(a, 2);
  return call_old(d, "cuGraphAddKernelNode", node_named(a, 10), a.handle(1),
                  static_cast<const Handle*>(nullptr), uint64_t{0}, &node);
}

Status set_kernel_v1(D d, A a) {
  const KernelNodeParams node = kernel_at(a, 2);
  return call_old(d, "cuGraphKernelNodeSetParams", a.handle(1), &node);
}

Status set_exec_kernel_v1(D d, A a) {
  const KernelNodeParams node = kernel_at(a, 3);
  return call_old(d, "cuGraphExecKernelNodeSetParams", a.handle(1), a.handle(2), &node);
}

// The graph that the stream is being captured into.
Status captured_graph(D d, A a) {
  uint32_t status = 0;
  uint64_t id = 0, count = 0;
  const Handle* nodes = nullptr;
  return call_old(d, "cuStreamGetCaptureInfo_v2", a.handle(2), &status, &id, a.out_handle(1),
                  &nodes, &count);
}

std::map<std::string, Make> calls_for_graphs() {
  return {
      {"graph", [](D d, A a) { return d.cuGraphCreate(a.out_handle(1), 0); }},
      {"clone-graph", [](D d, A a) { return d.cuGraphClone(a.out_handle(1), a.handle(2)); }},
      {"child-graph",
       [](D d, A a) { return d.cuGraphChildGraphNodeGetGraph(a.handle(2), a.out_handle(1)); }},
      {"instantiate",
       [](D d, A a) { return d.cuGraphInstantiateWithFlags(a.out_handle(1), a.handle(2), 0); }},
      {"update", [](D d, A a) { return d.cuGraphExecUpdate(a.handle(1), a.handle(2), nullptr); }},
      {"launch-graph", [](D d, A a) { return d.cuGraphLaunch(a.handle(1), a.stream(2)); }},
      {"destroy-graph", [](D d, A a) { return d.cuGraphDestroy(a.handle(1)); }},
      {"destroy-exec", [](D d, A a) { return d.cuGraphExecDestroy(a.handle(1)); }},
      {"capture",
       [](D d, A a) {
         return d.cuStreamBeginCapture(a.handle(1), static_cast<uint32_t>(a.word_or(2, 0)));
       }},
      {"capture-to",
       [](D d, A a) {
         return d.cuStreamBeginCaptureToGraph(a.handle(1), a.handle(2), nullptr, nullptr, 0, 0);
       }},
      {"captured-graph", captured_graph},
      {"end-capture", [](D d, A a) { return d.cuStreamEndCapture(a.handle(2), a.out_handle(1)); }},
  };
}

std::map<std::string, Make> calls_that_add() {
  return {
      {"graph-kernel",
       [](D d, A a) {
         const KernelNodeParams node = kernel_at(a, 2);
         return d.cuGraphAddKernelNode(node_named(a, 10), a.handle(1), nullptr, 0, &node);
       }},
      {"graph-kernel-v1", add_kernel_v1},
      {"graph-copy",
       [](D d, A a) {
         const Memcpy3D copy = copy_at(a, 2);
         return d.cuGraphAddMemcpyNode(node_named(a, 3), a.handle(1), nullptr, 0, &copy, nullptr);
       }},
      {"graph-set",
       [](D d, A a) {
         const MemsetNodeParams fill = fill_at(a, 2);
         return d.cuGraphAddMemsetNode(node_named(a, 5), a.handle(1), nullptr, 0, &fill, nullptr);
       }},
      {"graph-alloc",
       [](D d, A a) {
         AllocNodeParams node = alloc_at(a, 2);
         return d.cuGraphAddMemAllocNode(node_named(a, 3), a.handle(1), nullptr, 0, &node);
       }},
      {"graph-free",
       [](D d, A a) {
         return d.cuGraphAddMemFreeNode(node_named(a, 2), a.handle(1), nullptr, 0, kTo);
       }},
      {"graph-host",
       [](D d, A a) {
         const HostNodeParams node = {reinterpret_cast<void*>(do_nothing), nullptr};
         return d.cuGraphAddHostNode(node_named(a, 2), a.handle(1), nullptr, 0, &node);
       }},
      {"graph-empty",
       [](D d, A a) { return d.cuGraphAddEmptyNode(node_named(a, 2), a.handle(1), nullptr, 0); }},
      {"graph-record",
       [](D d, A a) {
         return d.cuGraphAddEventRecordNode(node_named(a, 3), a.handle(1), nullptr, 0, a.handle(2));
       }},
      {"graph-wait",
       [](D d, A a) {
         return d.cuGraphAddEventWaitNode(node_named(a, 3), a.handle(1), nullptr, 0, a.handle(2));
       }},
      {"graph-child",
       [](D d, A a) {
         return d.cuGraphAddChildGraphNode(node_named(a, 3), a.handle(1), nullptr, 0, a.handle(2));
       }},
      {"graph-node", add_node},
      {"graph-node-v1", add_node_v1},
  };
}

std::map<std::string, Make> calls_for_nodes() {
  return {
      {"clone-node",
       [](D d, A a) {
         return d.cuGraphNodeFindInClone(a.out_handle(1), a.handle(2), a.handle(3));
       }},
      {"destroy-node", [](D d, A a) { return d.cuGraphDestroyNode(a.handle(1)); }},
      {"enable",
       [](D d, A a) { return d.cuGraphNodeSetEnabled(a.handle(1), a.handle(2), number(a, 3)); }},
      {"set-kernel",
       [](D d, A a) {
         const KernelNodeParams node = kernel_at(a, 2);
         return d.cuGraphKernelNodeSetParams(a.handle(1), &node);
       }},
      {"set-kernel-v1", set_kernel_v1},
      {"set-copy",
       [](D d, A a) {
         const Memcpy3D copy = copy_at(a, 2);
         return d.cuGraphMemcpyNodeSetParams(a.handle(1), &copy);
       }},
      {"set-set",
       [](D d, A a) {
         const MemsetNodeParams fill = fill_at(a, 2);
         return d.cuGraphMemsetNodeSetParams(a.handle(1), &fill);
       }},
      {"set-node",
       [](D d, A a) {
         const GraphNodeParams node = node_at(a, 2);
         return d.cuGraphNodeSetParams(a.handle(1), &node);
       }},
      {"set-exec-kernel",
       [](D d, A a) {
         const KernelNodeParams node = kernel_at(a, 3);
         return d.cuGraphExecKernelNodeSetParams(a.handle(1), a.handle(2), &node);
       }},
      {"set-exec-kernel-v1", set_exec_kernel_v1},
      {"set-exec-copy",
       [](D d, A a) {
         const Memcpy3D copy = copy_at(a, 3);
         return d.cuGraphExecMemcpyNodeSetParams(a.handle(1), a.handle(2), &copy, nullptr);
       }},
      {"set-exec-set",
       [](D d, A a) {
         const MemsetNodeParams fill = fill_at(a, 3);
         return d.cuGraphExecMemsetNodeSetParams(a.handle(1), a.handle(2), &fill, nullptr);
       }},
      {"set-exec-child",
       [](D d, A a) {
         return d.cuGraphExecChildGraphNodeSetParams(a.handle(1), a.handle(2), a.handle(3));
       }},
      {"set-exec-node",
       [](D d, A a) {
         const GraphNodeParams node = node_at(a, 3);
         return d.cuGraphExecNodeSetParams(a.handle(1), a.handle(2), &node);
       }},
  };
}

// Work that is given to a stream, and may be captured; see also launches, copies and fills.
std::map<std::string, Make> calls_for_streams() {
  return {
      {"host-func",
       [](D d, A a) {
         return d.cuLaunchHostFunc(a.stream(1), reinterpret_cast<void*>(do_nothing), nullptr);
       }},
      {"write-value",
       [](D d, A a) { return d.cuStreamWriteValue32(a.stream(3), a.word(1), number(a, 2), 0); }},
      {"record-flags",
       [](D d, A a) { return d.cuEventRecordWithFlags(a.handle(1), a.stream(3), number(a, 2)); }},
  };
}

}  // namespace

const std::map<std::string, Make>& graph_calls() {
  static const std::map<std::string, Make> calls = [] {
    std::map<std::string, Make> all = calls_for_graphs();
    for (auto some : {calls_that_add(), calls_for_nodes(), calls_for_streams()}) all.merge(some);
    return all;
  }();
  return calls;
}

}  // namespace workload
