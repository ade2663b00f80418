// Which graph holds what: followed through the calls that make, change, instantiate and launch
// graphs, and through work that is captured into them.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <utility>

#include "correlate/calls/learner.hpp"
#include "correlate/graphs/graph_calls.hpp"
#include "correlate/graphs/graph_holding.hpp"
#include "correlate/graphs/launched_contents.hpp"
#include "correlate/graphs/stream_captures.hpp"
#include "util/hash.hpp"

namespace cudabpf {

class Graphs : public Learner {
 public:
  // Which calls are recorded: those that begin and end captures, those that say which collectives
  // graphs hold, or all that concern graphs.
  enum class Recorded : std::uint8_t { not_all, captures, collectives, all };
  // `kept`: the room for nodes.
  Graphs(Recorded recorded, KeptNodes kept) : recorded_(recorded), kept_(std::move(kept)) {}

  // Fills in the contents of the graph that the call launches, and whether the call is captured.
  void ended(const CallStack& stack, Call& call) {
    bool concerns = call.function->type == Type::graph || !capturing_.empty();
    if (concerns) follow(call, stack.top_is_inside(concerns_graphs));
  }
  void orphaned(Call& call) {
    if (call.function->graph == GraphAction::launch) call.graph_unknown = GraphUnknown::lost;
  }
  void process_began(std::uint32_t pid) { of(pid).whole = true; }
  void calls_lost(std::uint32_t pid);
  void process_gone(std::uint32_t pid);
  void add_names(std::unordered_set<const KernelName*>& to) const;

 private:
  using NodeId = GraphHolding::NodeId;

  struct NodeOf {
    std::uint64_t graph;
    NodeId id;
  };

  struct Executable {
    GraphHolding::Ptr holding;
    const GraphContent* content = nullptr;  // null: to be looked up
    bool had_disabled = false;              // a node of it was disabled
  };

  struct OfProcess {
    explicit OfProcess(KeptNodes& kept)
        : graphs(kept), nodes(kept), executables(kept), contents(kept) {}

    bool whole = false;   // seen from its beginning
    bool missed = false;  // calls of it are missing
    bool full = false;    // there was no room for everything
    HandleTable<GraphHolding::Ptr> graphs;
    HandleTable<NodeOf> nodes;
    HandleTable<Executable> executables;
    StreamCaptures captures;
    LaunchedContents contents;
  };

  // `is_part`: another call that does the same made this one.
  void follow(Call& call, bool is_part);
  OfProcess& of(std::uint32_t pid) { return processes_.try_emplace(pid, kept_).first->second; }
  void follow_graph(OfProcess& process, const Call& call, GraphAction action);
  void follow_capture(OfProcess& process, Call& call, bool is_part);
  void end_capture(OfProcess& process, const Call& call);
  void add_node(OfProcess& process, const Call& call);
  void set_node(OfProcess& process, const Call& call, GraphHolding::Node& node);
  void set_exec_node(OfProcess& process, const Call& call);
  void enable_exec_node(OfProcess& process, const Call& call);
  void remove_node(OfProcess& process, const Call& call);
  void name_graph(OfProcess& process, std::uint64_t handle, GraphHolding::Ptr holding);
  // An unknown graph or node was changed: it may be any.
  void unknown_changed(OfProcess& process);
  void find_in_clone(OfProcess& process, std::uint64_t node, std::uint64_t graph,
                     std::uint64_t copy);
  void update(OfProcess& process, std::uint64_t executable, std::optional<std::uint64_t> graph);
  void launch(OfProcess& process, Call& call);
  const GraphContent* content_of(OfProcess& process, const GraphHolding& holding, const Call& call);

  // Why a graph is not known.
  GraphUnknown why_unknown(const OfProcess& process) const;
  // Or not known any more.
  GraphUnknown why_changed(const OfProcess& process) const;
  GraphHolding::Ptr unknown_graph(const OfProcess& process);
  // A copy of the contents of the graph with this handle.
  GraphHolding::Ptr copy_of(OfProcess& process, std::optional<std::uint64_t> graph,
                            GraphHolding::Nodes nodes);
  GraphHolding::Node* node_of(OfProcess& process, std::optional<std::uint64_t> handle);
  // What the call changes: none if its executable is unknown; the node is null if only that is.
  struct Changed {
    Executable* executable = nullptr;
    GraphHolding::Node* node = nullptr;
  };
  Changed changed_by(OfProcess& process, const Call& call);

  Recorded recorded_;
  KeptNodes kept_;
  HashSet<std::uint32_t> capturing_;  // processes with a stream that is captured
  HashMap<std::uint32_t, OfProcess> processes_;
  std::uint64_t next_content_ = 1;
};

}  // namespace cudabpf
