#include "correlate/graphs/graphs.hpp"

#include <utility>

#include "cudabpf/product.hpp"
#include "util/hash.hpp"

namespace cudabpf {

namespace {

using Nodes = GraphHolding::Nodes;

// The driver makes no nodes of captured copies and fills of size 0.
bool is_nothing(const GraphOperation& work) {
  return (work.what == NodeWork::copy || work.what == NodeWork::set) && work.size == 0;
}

std::uint64_t shape_of(const Product& product) {
  std::uint64_t sum = hash_of(product.m, product.n, product.k);
  for (std::uint64_t more :
       {product.batch, std::uint64_t{product.epilogue}, static_cast<std::uint64_t>(product.compute),
        static_cast<std::uint64_t>(product.unknown)})
    sum = hash_of(sum, more);
  for (CudaType type : product.types) sum = hash_of(sum, static_cast<std::uint64_t>(type));
  for (std::uint32_t transposed : product.transposed) sum = hash_of(sum, transposed);
  return sum;
}

}  // namespace

void Graphs::follow(Call& call, bool is_part) {
  GraphAction action = call.function->graph;
  bool launches = action == GraphAction::launch;
  if (recorded_ < Recorded::collectives && launches)
    call.graph_unknown = GraphUnknown::not_recorded;
  if (recorded_ == Recorded::not_all) return;
  if (action == GraphAction::none && !capturing_.contains(call.pid)) return;
  OfProcess& process = of(call.pid);
  if (action == GraphAction::none || launches) follow_capture(process, call, is_part);
  if (recorded_ < Recorded::collectives && !is_about_captures(*call.function)) return;
  if (launches && !call.captured) launch(process, call);
  if (launches || action == GraphAction::none || is_part || !call.has_return) return;
  // A capture that has failed has ended, too.
  if (call.result == 0 || action == GraphAction::end_capture) follow_graph(process, call, action);
}

void Graphs::follow_capture(OfProcess& process, Call& call, bool is_part) {
  const Function& function = *call.function;
  bool succeeded = call.has_return && call.result == 0;
  GraphHolding* into = process.captures.into(call);
  if (function.meaning.event != EventEffect::none) {
    if (!succeeded || !process.captures.follow_event(call)) return;
    call.captured = true;
    GraphOperation event;
    event.what = NodeWork::other;
    if (!is_part) into->add_captured(event);
    return;
  }
  if (function.meaning.stream == StreamEffect::destroy && succeeded)
    return process.captures.stream_destroyed(call);
  if (into && function.type == Type::collective) {
    call.captured = true;
    bool given = call.has_return && !function.is_failure(call.result) && !call.parent;
    if (given) into->add_collective({call.id, function.op, call.details.size.value_or(0)});
  }
  if (into && call.product) {
    call.captured = true;
    bool given = call.has_return && !function.is_failure(call.result) && !call.parent;
    if (given) into->add_product({call.id, shape_of(*call.product)});
  }
  if (!into || !may_be_captured(function)) return;
  call.captured = true;
  if (!succeeded || is_part) return;
  if (function.graph != GraphAction::launch) {
    if (GraphOperation work = work_of_call(call); !is_nothing(work)) into->add_captured(work);
    return;
  }
  Executable* launched = process.executables.find(argument_of(call, Role::graph_exec).value_or(0));
  into->add_captured(launched ? launched->holding->copy(Nodes::own) : unknown_graph(process));
}

GraphUnknown Graphs::why_unknown(const OfProcess& process) const {
  if (process.missed) return GraphUnknown::lost;
  if (process.full) return GraphUnknown::too_many;
  return process.whole ? GraphUnknown::not_recorded : GraphUnknown::before;
}

// Usually, what is changed is unknown because calls are missing.
GraphUnknown Graphs::why_changed(const OfProcess& process) const {
  if (process.missed) return GraphUnknown::lost;
  return process.full ? GraphUnknown::too_many : GraphUnknown::changed;
}

GraphHolding::Ptr Graphs::unknown_graph(const OfProcess& process) {
  return std::make_shared<GraphHolding>(kept_, why_unknown(process));
}

GraphHolding::Ptr Graphs::copy_of(OfProcess& process, std::optional<std::uint64_t> graph,
                                  Nodes nodes) {
  GraphHolding::Ptr* known = process.graphs.find(graph.value_or(0));
  return known ? (*known)->copy(nodes) : unknown_graph(process);
}

GraphHolding::Node* Graphs::node_of(OfProcess& process, std::optional<std::uint64_t> handle) {
  NodeOf* node = process.nodes.find(handle.value_or(0));
  GraphHolding::Ptr* graph = node ? process.graphs.find(node->graph) : nullptr;
  return graph ? (*graph)->find(node->id) : nullptr;
}

void Graphs::name_graph(OfProcess& process, std::uint64_t handle, GraphHolding::Ptr holding) {
  process.full |= !process.graphs.set(handle, std::move(holding));
}

void Graphs::unknown_changed(OfProcess& process) {
  GraphUnknown why = why_changed(process);
  process.graphs.each([&](GraphHolding::Ptr& graph) { graph->forget(why); });
  process.captures.forget(why);
}

void Graphs::follow_graph(OfProcess& process, const Call& call, GraphAction action) {
  auto given = argument_of(call, Role::graph);
  auto node = argument_of(call, Role::node);
  std::uint64_t graph = given.value_or(0), returned = call.outs.empty() ? 0 : call.outs[0];
  std::uint64_t executable = argument_of(call, Role::graph_exec).value_or(0);
  switch (action) {
    case GraphAction::create:
      return name_graph(process, returned, std::make_shared<GraphHolding>(kept_));
    case GraphAction::clone:
      return name_graph(process, returned, copy_of(process, given, Nodes::own));
    case GraphAction::destroy:
      process.graphs.erase(graph);
      return process.nodes.erase_if([&](const NodeOf& of) { return of.graph == graph; });
    case GraphAction::add_node:
      return add_node(process, call);
    case GraphAction::remove_node:
      return remove_node(process, call);
    case GraphAction::set_node:
      if (GraphHolding::Node* known = node_of(process, node))
        return set_node(process, call, *known);
      return unknown_changed(process);
    case GraphAction::find_in_clone:
      return find_in_clone(process, node.value_or(0), graph, returned);
    case GraphAction::get_child:
      if (GraphHolding::Node* holder = node_of(process, node); holder && holder->graph)
        name_graph(process, returned, holder->graph);
      return;
    case GraphAction::instantiate:
      process.full |= !process.executables.set(returned, {copy_of(process, given, Nodes::same)});
      return;
    case GraphAction::update:
      return update(process, executable, given);
    case GraphAction::set_exec_node:
      return set_exec_node(process, call);
    case GraphAction::enable_exec_node:
      return enable_exec_node(process, call);
    case GraphAction::destroy_exec:
      return process.executables.erase(executable);
    case GraphAction::begin_capture: {
      GraphHolding::Ptr* into = process.graphs.find(graph);
      if (given && !into) unknown_changed(process);
      process.captures.begin(call, !given ? std::make_shared<GraphHolding>(kept_)
                                   : into ? *into
                                          : unknown_graph(process));
      capturing_.insert(call.pid);
      return;
    }
    case GraphAction::end_capture:
      return end_capture(process, call);
    case GraphAction::launch:
    case GraphAction::none:
      return;
  }
}

void Graphs::find_in_clone(OfProcess& process, std::uint64_t node, std::uint64_t graph,
                           std::uint64_t copy) {
  NodeOf* original = process.nodes.find(node);
  GraphHolding::Ptr* clone = process.graphs.find(graph);
  NodeId id = original && clone ? (*clone)->copy_of(original->id) : 0;
  if (id) process.full |= !process.nodes.set(copy, {graph, id});
}

// Disabled nodes stay disabled.
void Graphs::update(OfProcess& process, std::uint64_t executable,
                    std::optional<std::uint64_t> graph) {
  Executable updated = {copy_of(process, graph, Nodes::same)};
  if (Executable* before = process.executables.find(executable); before && before->had_disabled) {
    updated.had_disabled = true;
    if (before->holding->unknown() != GraphUnknown::none ||
        !updated.holding->disable_as_in(*before->holding))
      updated.holding->forget(GraphUnknown::changed);
  }
  process.full |= !process.executables.set(executable, std::move(updated));
}

void Graphs::end_capture(OfProcess& process, const Call& call) {
  GraphHolding::Ptr made = process.captures.end(call);
  if (process.captures.empty()) capturing_.erase(call.pid);
  if (recorded_ >= Recorded::collectives && call.result == 0 && !call.outs.empty())
    name_graph(process, call.outs[0], made ? made : unknown_graph(process));
}

void Graphs::add_node(OfProcess& process, const Call& call) {
  std::uint64_t graph = argument_of(call, Role::graph).value_or(0);
  GraphHolding::Ptr* holding = process.graphs.find(graph);
  if (!holding) return unknown_changed(process);
  if (call.read_fault || call.outs.empty()) return (*holding)->forget(GraphUnknown::lost);
  GraphHolding::Node node{.work = work_of_call(call), .graph = nullptr};
  if (node.work.what == NodeWork::graph) {
    // The first graph that is named is the one that the node is added to.
    constexpr std::size_t CHILD_AT = 4;
    bool named = call.details.node == NodeWork::none && call.words.size() > CHILD_AT;
    node.graph = copy_of(process, named ? call.words[CHILD_AT] : call.details.child, Nodes::own);
  }
  if (node.work.what == NodeWork::conditional && call.outs.size() > CB_NODE_BODY) {
    node.graph = std::make_shared<GraphHolding>(kept_);
    name_graph(process, call.outs[CB_NODE_BODY], node.graph);
  }
  NodeId id = kept_.new_id();
  process.full |= !process.nodes.set(call.outs[0], {graph, id});
  (*holding)->add(id, std::move(node));
}

void Graphs::set_node(OfProcess& process, const Call& call, GraphHolding::Node& node) {
  GraphOperation work = work_of_call(call);
  if (work.what != node.work.what) return;  // the trace shows nothing of what is set
  node.work = work;
  if (work.what != NodeWork::graph) return;
  bool named = call.details.node == NodeWork::none;
  auto child = named ? argument_of(call, Role::graph) : call.details.child;
  GraphHolding::Ptr before = std::exchange(node.graph, copy_of(process, child, Nodes::own));
  if (!node.graph->disable_as_in(*before)) node.graph->forget(GraphUnknown::changed);
}

Graphs::Changed Graphs::changed_by(OfProcess& process, const Call& call) {
  Executable* executable =
      process.executables.find(argument_of(call, Role::graph_exec).value_or(0));
  NodeOf* node = process.nodes.find(argument_of(call, Role::node).value_or(0));
  return {executable, executable && node ? executable->holding->find(node->id) : nullptr};
}

void Graphs::set_exec_node(OfProcess& process, const Call& call) {
  auto [executable, node] = changed_by(process, call);
  if (!executable || executable->holding->is_forgotten()) return;
  if (!node || call.read_fault) {
    executable->content = nullptr;
    return executable->holding->forget(node ? GraphUnknown::lost : why_changed(process));
  }
  GraphOperation before = node->work;
  set_node(process, call, *node);
  // Usually only the kernel's arguments have changed.
  if (node->work != before || before.what == NodeWork::graph) executable->content = nullptr;
}

void Graphs::enable_exec_node(OfProcess& process, const Call& call) {
  auto [executable, node] = changed_by(process, call);
  auto flag = argument_of(call, Role::u32);
  bool enabled = flag && static_cast<std::uint32_t>(*flag) != 0;
  if (!executable) {  // it stays so when its contents are known again
    auto handle = argument_of(call, Role::graph_exec);
    if (enabled || !handle) return;
    process.full |= !process.executables.set(*handle, {unknown_graph(process), nullptr, true});
    return;
  }
  executable->content = nullptr;
  executable->had_disabled |= !enabled;
  if (!node) return executable->holding->forget(why_changed(process));
  node->enabled = enabled;
}

void Graphs::remove_node(OfProcess& process, const Call& call) {
  std::uint64_t handle = argument_of(call, Role::node).value_or(0);
  NodeOf* node = process.nodes.find(handle);
  if (!node) return unknown_changed(process);
  if (GraphHolding::Ptr* graph = process.graphs.find(node->graph)) (*graph)->remove(node->id);
  process.nodes.erase(handle);
}

void Graphs::launch(OfProcess& process, Call& call) {
  if (call.result != 0) return;
  Executable* launched = process.executables.find(argument_of(call, Role::graph_exec).value_or(0));
  bool looked_up = launched && launched->content;
  if (!looked_up) {  // only then are all nodes looked at
    call.graph_unknown = launched ? launched->holding->unknown() : why_unknown(process);
    if (call.graph_unknown != GraphUnknown::none) return;
    launched->content = content_of(process, *launched->holding, call);
  }
  call.graph = launched->content;
  if (!call.graph) call.graph_unknown = GraphUnknown::too_many;
}

const GraphContent* Graphs::content_of(OfProcess& process, const GraphHolding& holding,
                                       const Call& call) {
  GraphHolding::Summary summary = holding.summary();
  if (recorded_ != Recorded::all)
    summary = {0, 0, {}, std::move(summary.collectives), std::move(summary.products)};
  if (const GraphContent* known = process.contents.find(summary)) return known;
  if (const GraphContent* made = process.contents.add(summary, next_content_++, call)) return made;
  // The others get new numbers when they are launched again.
  process.executables.each([](Executable& executable) { executable.content = nullptr; });
  process.contents.clear();
  return process.contents.add(summary, next_content_++, call);
}

// From now on it is not known what any of the process's graphs holds.
void Graphs::calls_lost(std::uint32_t pid) {
  if (recorded_ == Recorded::not_all) return;
  OfProcess& process = of(pid);
  process.missed = true;
  process.graphs.clear();
  process.nodes.clear();
  process.executables.clear();
  process.captures.calls_lost();
}

void Graphs::process_gone(std::uint32_t pid) {
  processes_.erase(pid);
  capturing_.erase(pid);
}

void Graphs::add_names(std::unordered_set<const KernelName*>& to) const {
  auto add = [&](const GraphOperation& work) {
    if (work.kernel) to.insert(work.kernel);
  };
  for (const auto& [pid, process] : processes_) {
    process.graphs.each([&](const GraphHolding::Ptr& graph) { graph->each_work(add); });
    process.executables.each([&](const Executable& one) { one.holding->each_work(add); });
    process.captures.each_work(add);
    process.contents.each_work(add);
  }
}

}  // namespace cudabpf
