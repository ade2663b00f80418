// What a graph, or an executable graph, holds: nodes that the program knows by a handle and may
// change, and those that a capture made, which it cannot name.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "correlate/graphs/kept_nodes.hpp"
#include "cudabpf/event.hpp"
#include "util/hash.hpp"

namespace cudabpf {

struct GraphOperationHash {
  std::size_t operator()(const GraphOperation& work) const;
};
using GraphOperations = HashMap<GraphOperation, std::uint64_t, GraphOperationHash>;

class GraphHolding {
 public:
  using Ptr = std::shared_ptr<GraphHolding>;
  // An executable graph's nodes have the same numbers, and are known by the handles of the graph's.
  using NodeId = std::uint64_t;

  struct Node {
    GraphOperation work;
    bool enabled = true;
    Ptr graph;            // what a child graph or a conditional node's first body holds
    NodeId original = 0;  // the node that it is a copy of
  };

  // What runs once per launch and, separately, what runs any number of times.
  struct Summary {
    std::uint64_t nodes = 0, kernels = 0;
    GraphOperations operations;
    std::vector<CapturedCollective> collectives;  // in their order
    std::vector<CapturedProduct> products;        // in theirs
  };

  explicit GraphHolding(KeptNodes& kept, GraphUnknown unknown = GraphUnknown::none)
      : kept_(kept), unknown_(unknown) {}
  ~GraphHolding() { clear(); }
  GraphHolding(const GraphHolding&) = delete;
  GraphHolding& operator=(const GraphHolding&) = delete;

  enum class Nodes : std::uint8_t { same, own };  // the numbers of a copy's nodes
  // A copy, including copies of the graphs in it.
  Ptr copy(Nodes nodes) const;
  void add(NodeId id, Node node);
  void add_captured(const GraphOperation& work);
  void add_captured(Ptr launched);  // a launch of it
  void add_collective(const CapturedCollective& collective);
  void add_product(const CapturedProduct& product);
  void remove(NodeId id);
  // Also searches the graphs that it holds; null: it has no such node.
  Node* find(NodeId id) { return find(id, 0); }
  // The node that is a copy of this one; 0: there is none.
  NodeId copy_of(NodeId original) const;
  // Disables the nodes that are disabled in `other`; false: this lacks one of them.
  bool disable_as_in(const GraphHolding& other);

  // It is no longer known what it holds.
  void forget(GraphUnknown why);
  bool is_forgotten() const { return unknown_ != GraphUnknown::none; }
  // Why its contents, or those of a graph in it, are not known. Looks at every node.
  GraphUnknown unknown() const { return unknown(0); }
  Summary summary() const;

  template <typename Visit>
  void each_work(Visit&& visit) const {
    for (const auto& [id, node] : named_) {
      visit(node.work);
      if (node.graph) node.graph->each_work(visit);
    }
    for (const auto& [work, count] : captured_) visit(work);
    for (const Ptr& graph : launched_) graph->each_work(visit);
  }

 private:
  // Real programs do not nest graphs deeper than this.
  static constexpr int MAX_NESTED = 16;

  Ptr copy(Nodes nodes, int depth) const;
  Node* find(NodeId id, int depth);
  GraphUnknown unknown(int depth) const;
  void add_to(Summary& summary, bool conditional) const;
  bool take_room();
  void clear();

  KeptNodes& kept_;
  GraphUnknown unknown_;
  std::size_t size_ = 0;  // how much of `kept_` it takes
  std::unordered_map<NodeId, Node> named_;
  GraphOperations captured_;
  std::vector<Ptr> launched_;
  std::vector<CapturedCollective> collectives_;
  std::vector<CapturedProduct> products_;
};

}  // namespace cudabpf
