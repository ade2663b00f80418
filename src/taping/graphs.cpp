#include "taping/graphs.hpp"

#include <algorithm>
#include <utility>

#include "taping/kept_call.hpp"
#include "util/hash.hpp"

namespace cudabpf::taping {

// ----- following calls

void Graphs::call(const Call& call) {
  const Function& function = *call.function;
  if (function.graph == GraphAction::none || function.layer() != 0 || call.parent) return;
  if (!call.has_return || function.is_failure(call.result)) return;
  std::uint64_t executable = given_to(call, Role::graph_exec), node = given_to(call, Role::node);
  switch (function.graph) {
    case GraphAction::instantiate:
      if (call.outs.empty()) return;
      executables_[call.outs[0]] = std::make_shared<ExecutableGraph>(
          ExecutableGraph{.first = call.payload, .nodes = call.payload, .changes = {}});
      return;
    case GraphAction::update:
      return update(executable, call.payload);
    case GraphAction::set_exec_node:
      return set(executable, node, call.payload);
    case GraphAction::enable_exec_node:
      return enable(executable, node, static_cast<std::uint32_t>(given_to(call, Role::u32)));
    case GraphAction::destroy_exec:
      executables_.erase(executable);
      return;
    default:
      return;
  }
}

std::shared_ptr<const ExecutableGraph> Graphs::executable(std::uint64_t handle) const {
  auto known = executables_.find(handle);
  return known == executables_.end() ? nullptr : known->second;
}

// A copy, if somebody has it as it was.
ExecutableGraph* Graphs::to_change(std::uint64_t handle) {
  auto known = executables_.find(handle);
  if (known == executables_.end()) return nullptr;
  if (known->second.use_count() > 1)
    known->second = std::make_shared<ExecutableGraph>(*known->second);
  known->second->changed++;
  return known->second.get();
}

// Nodes that are disabled stay disabled.
void Graphs::update(std::uint64_t handle, std::uint64_t nodes) {
  ExecutableGraph* graph = to_change(handle);
  if (!graph) return;
  graph->nodes = nodes;
  graph->unknown_change = false;
  std::erase_if(graph->changes, [](const auto& change) { return !change.second.disabled; });
  for (auto& [node, change] : graph->changes) change.given = 0;
}

void Graphs::set(std::uint64_t handle, std::uint64_t node, std::uint64_t given) {
  ExecutableGraph* graph = to_change(handle);
  if (!graph) return;
  if (!given) graph->unknown_change = true;
  ExecutableGraph::Change& change = graph->changes[node];
  change.order = graph->changed;
  change.given = given;
}

void Graphs::enable(std::uint64_t handle, std::uint64_t node, bool enabled) {
  ExecutableGraph* graph = to_change(handle);
  if (!graph) return;
  graph->changes[node].disabled = !enabled;
}

// ----- what one does

namespace {

// The reason why a launch cannot be captured; empty: there is none.
std::string_view why_not(NodeType type) {
  switch (type) {
    case NodeType::kernel:
    case NodeType::copy:
    case NodeType::set:
    case NodeType::graph:
    case NodeType::empty:
    case NodeType::wait:
    case NodeType::record:
      return {};
    case NodeType::host:
      return "it calls the program (a host node)";
    case NodeType::signal_outside:
      return "it signals a semaphore outside of CUDA";
    case NodeType::wait_outside:
      return "it waits for a semaphore outside of CUDA";
    case NodeType::alloc:
      return "it allocates memory (a node for that)";
    case NodeType::free:
      return "it frees memory (a node for that)";
    case NodeType::memory_operations:
      return "it waits for memory or writes to it (a node of batched operations)";
    case NodeType::conditional:
      return "what it does depends on a condition (a conditional node)";
  }
  return "it has a node of an unknown type";
}

bool are_alike(const KeptNode& a, const KeptNode& b) {
  return a.type == b.type && a.holder == b.holder;
}

void give(KeptNode& node, KeptNode& now) {
  node.unreadable = now.unreadable;
  node.given = std::move(now.given);
  node.parameters = std::move(now.parameters);
}

// Its nodes, as they are changed step by step.
class Changing {
 public:
  static Result<Changing> begin(const ExecutableGraph& graph, const TapedProcess& process) {
    Changing changing(process);
    changing.kept_ = TRY(nodes_in(process.payload(graph.nodes)));
    if (changing.kept_.of_node) return Error{"its nodes could not be read", {}};
    changing.disabled_.resize(changing.kept_.nodes.size());
    changing.name(changing.kept_);
    if (graph.first == graph.nodes) return changing;
    // An update is possible only if both graphs have the same nodes. Which is which is said by
    // their order.
    KeptNodes first = TRY(nodes_in(process.payload(graph.first)));
    if (!std::equal(first.nodes.begin(), first.nodes.end(), changing.kept_.nodes.begin(),
                    changing.kept_.nodes.end(), are_alike))
      return Error{"it was updated from a graph whose nodes are in another order", {}};
    changing.name(first);
    return changing;
  }

  Result<> change(std::uint64_t handle, const ExecutableGraph::Change& change) {
    auto known = places_.find(handle);
    if (known == places_.end()) return Error{"a node of it was changed that is not known", {}};
    KeptNode& node = kept_.nodes[known->second];
    if (change.disabled) disabled_[known->second] = true;
    if (!change.given) return ok();
    KeptNodes given = TRY(nodes_in(process_.payload(change.given)));
    if (!given.of_node) return change_child(known->second, given);
    if (given.nodes[0].type != node.type)
      return Error{"a node of it was given what is for another kind of node", {}};
    give(node, given.nodes[0]);
    return ok();
  }

  Result<std::vector<KeptNode>> work() {
    std::vector<KeptNode> work;
    for (std::size_t place : TRY(order_of(kept_))) {
      KeptNode& node = kept_.nodes[place];
      if (std::string_view why = why_not(node.type); !why.empty())
        return Error{std::string(why), {}};
      if (disabled_[place] || node.type == NodeType::graph || node.type == NodeType::empty)
        continue;
      if (node.unreadable) return Error{"what one of its nodes is given could not be read", {}};
      work.push_back(std::move(node));
    }
    return work;
  }

 private:
  explicit Changing(const TapedProcess& process) : process_(process) {}

  void name(const KeptNodes& by) {
    for (std::size_t i = 0; i < by.nodes.size(); i++) places_.emplace(by.nodes[i].handle, i);
  }

  // Those of a child graph, which keep their order.
  Result<> change_child(std::size_t holder, KeptNodes& now) {
    std::vector<bool> is_below(kept_.nodes.size());
    std::size_t next = 0;
    is_below[holder] = true;
    for (std::size_t i = holder + 1; i < kept_.nodes.size(); i++) {
      KeptNode& node = kept_.nodes[i];
      if (!node.holder || !is_below[node.holder - 1]) continue;
      is_below[i] = true;
      if (next == now.nodes.size() || now.nodes[next].type != node.type)
        return Error{"a child graph was replaced by one whose nodes are in another order", {}};
      node.attributes = std::move(now.nodes[next].attributes);
      give(node, now.nodes[next++]);
    }
    if (next != now.nodes.size())
      return Error{"a child graph was replaced by one that has more nodes", {}};
    return ok();
  }

  const TapedProcess& process_;
  KeptNodes kept_;
  std::vector<bool> disabled_;
  HashMap<std::uint64_t, std::size_t> places_;  // by handle
};

}  // namespace

Result<std::vector<KeptNode>> work_of(const ExecutableGraph& graph, const TapedProcess& process) {
  if (graph.unknown_change) return Error{"what a node of it was changed to could not be kept", {}};
  Changing changing = TRY(Changing::begin(graph, process));
  std::vector<std::pair<std::uint64_t, ExecutableGraph::Change>> changes(graph.changes.begin(),
                                                                         graph.changes.end());
  std::sort(changes.begin(), changes.end(),
            [](const auto& a, const auto& b) { return a.second.order < b.second.order; });
  for (const auto& [node, change] : changes) TRY(changing.change(node, change));
  return changing.work();
}

}  // namespace cudabpf::taping
