#include "correlate/graphs/graph_calls.hpp"

#include <string_view>
#include <unordered_map>
#include <utility>

namespace cudabpf {

namespace {

using enum GraphAction;

GraphAction action_named(std::string_view name) {
  static const std::unordered_map<std::string_view, GraphAction> ACTIONS = {
      {"cuGraphCreate", create},
      {"cuGraphClone", clone},
      {"cuGraphDestroy", destroy},
      {"cuGraphDestroyNode", remove_node},
      {"cuGraphNodeFindInClone", find_in_clone},
      {"cuGraphChildGraphNodeGetGraph", get_child},
      {"cuGraphNodeSetEnabled", enable_exec_node},
      {"cuGraphExecDestroy", destroy_exec},
      {"cuGraphExecUpdate", update},
      {"cuGraphLaunch", launch},
      {"cuStreamBeginCapture", begin_capture},
      {"cuStreamBeginCaptureToGraph", begin_capture},
      {"cuStreamEndCapture", end_capture},
  };
  if (auto known = ACTIONS.find(name); known != ACTIONS.end()) return known->second;
  if (name.starts_with("cuGraphInstantiate")) return instantiate;
  if (name.starts_with("cuGraphAdd") && name.ends_with("Node")) return add_node;
  // Those of hosts, events and semaphores change nothing that is told of a node.
  bool sets = name.ends_with("SetParams");
  for (std::string_view what : {"KernelNode", "MemcpyNode", "MemsetNode", "ChildGraphNode"})
    if (sets && name.find(what) != name.npos)
      return name.starts_with("cuGraphExec") ? set_exec_node : set_node;
  if (name == "cuGraphNodeSetParams") return set_node;
  return name == "cuGraphExecNodeSetParams" ? set_exec_node : none;
}

NodeWork node_named(std::string_view name) {
  constexpr std::pair<std::string_view, NodeWork> NODES[] = {
      {"KernelNode", NodeWork::kernel},  {"MemcpyNode", NodeWork::copy},
      {"MemsetNode", NodeWork::set},     {"ChildGraphNode", NodeWork::graph},
      {"MemAllocNode", NodeWork::alloc}, {"MemFreeNode", NodeWork::free},
      {"HostNode", NodeWork::host},
  };
  for (auto [part, work] : NODES)
    if (name.find(part) != name.npos) return work;
  return NodeWork::other;
}

NodeWork captured_work(const Function& function) {
  switch (function.type) {
    case Type::kernel:
      return function.op == Op::launch ? NodeWork::kernel : NodeWork::none;
    case Type::graph:
      return function.op == Op::launch ? NodeWork::graph : NodeWork::none;
    case Type::transfer:
      return NodeWork::copy;
    case Type::memory:
      if (function.op == Op::set) return NodeWork::set;
      if (function.op == Op::alloc) return NodeWork::alloc;
      return function.op == Op::free ? NodeWork::free : NodeWork::none;
    case Type::stream:
      if (function.op == Op::host_func) return NodeWork::host;
      return function.op == Op::memop ? NodeWork::other : NodeWork::none;
    case Type::ipc:
      return function.op == Op::external_semaphore ? NodeWork::other : NodeWork::none;
    default:
      return NodeWork::none;
  }
}

bool has_stream(const Function& function) {
  for (const Argument& argument : function.arguments)
    if ((argument.role == Role::stream && !argument.out) ||
        argument.layout == Struct::launch_config || argument.layout == Struct::launch_params)
      return true;
  return false;
}

}  // namespace

GraphAction graph_action(const Function& function) {
  return function.type == Type::graph ? action_named(function.name) : none;
}

bool may_be_captured(const Function& function) {
  return captured_work(function) != NodeWork::none && has_stream(function);
}

bool concerns_graphs(const Function& function) {
  bool joins =
      function.op == Op::wait_event || (function.type == Type::event && function.op == Op::record);
  return graph_action(function) != none || may_be_captured(function) || joins;
}

GraphWork work_of_call(const Call& call) {
  const Function& function = *call.function;
  const Details& details = call.details;
  GraphWork work;
  work.what = details.node;
  if (work.what == NodeWork::none)
    work.what = function.type == Type::graph && function.op != Op::launch
                    ? node_named(function.name)
                    : captured_work(function);
  switch (work.what) {
    case NodeWork::kernel:
      work.kernel = call.kernel;
      if (!work.kernel) work.handle = details.handle.value_or(0);
      work.has_dims = details.has_dims;
      work.grid = details.grid;
      work.block = details.block;
      work.shared = details.shared;
      break;
    case NodeWork::copy:
    case NodeWork::set:
    case NodeWork::alloc:
      work.size = details.size;
      break;
    default:
      break;
  }
  return work;
}

std::optional<std::uint64_t> argument_of(const Call& call, Role role) {
  for (const Argument& argument : call.function->arguments)
    if (argument.role == role && !argument.out && argument.word >= 0 &&
        static_cast<std::size_t>(argument.word) < call.words.size())
      return call.words[static_cast<std::size_t>(argument.word)];
  return std::nullopt;
}

}  // namespace cudabpf
