#include "correlate/graphs/graph_holding.hpp"

#include <utility>

#include "util/hash.hpp"
#include "util/saturating.hpp"

namespace cudabpf {

namespace {

std::uint64_t pair_of(std::uint32_t high, std::uint32_t low) {
  return std::uint64_t{high} << 32 | low;
}

}  // namespace

std::size_t GraphOperationHash::operator()(const GraphOperation& work) const {
  return hash_of(static_cast<std::uint64_t>(work.what) << 1 | work.conditional,
                 reinterpret_cast<std::uintptr_t>(work.kernel), work.handle,
                 work.size.value_or(~std::uint64_t{0}), pair_of(work.grid.x, work.grid.y),
                 pair_of(work.grid.z, work.block.x), pair_of(work.block.y, work.block.z),
                 work.shared);
}

bool GraphHolding::take_room() {
  if (unknown_ != GraphUnknown::none) return false;
  if (!kept_.take()) {
    forget(GraphUnknown::too_many);
    return false;
  }
  size_++;
  return true;
}

void GraphHolding::clear() {
  kept_.give_back(size_);
  size_ = 0;
  named_.clear();
  captured_.clear();
  launched_.clear();
  collectives_.clear();
  products_.clear();
}

void GraphHolding::forget(GraphUnknown why) {
  clear();
  unknown_ = why;
}

void GraphHolding::add(NodeId id, Node node) {
  if (take_room()) named_.emplace(id, std::move(node));  // ids are given out once
}

void GraphHolding::add_captured(const GraphOperation& work) {
  if (auto known = captured_.find(work); known != captured_.end())
    known->second++;
  else if (take_room())
    captured_.emplace(work, 1);
}

void GraphHolding::add_captured(Ptr launched) {
  if (take_room()) launched_.push_back(std::move(launched));
}

void GraphHolding::add_collective(const CapturedCollective& collective) {
  if (take_room()) collectives_.push_back(collective);
}

void GraphHolding::add_product(const CapturedProduct& product) {
  if (take_room()) products_.push_back(product);
}

void GraphHolding::remove(NodeId id) {
  if (!named_.erase(id)) return;
  kept_.give_back(1);
  size_--;
}

// Contents that are not wholly known take no room.
GraphHolding::Ptr GraphHolding::copy(Nodes nodes) const {
  GraphUnknown why = unknown();
  if (why != GraphUnknown::none) return std::make_shared<GraphHolding>(kept_, why);
  Ptr made = copy(nodes, 0);
  why = made->unknown();
  if (why != GraphUnknown::none) made->forget(why);
  return made;
}

GraphHolding::Ptr GraphHolding::copy(Nodes nodes, int depth) const {
  auto copy = std::make_shared<GraphHolding>(kept_, unknown_);
  if (depth == MAX_NESTED) copy->forget(GraphUnknown::too_many);
  auto of = [&](const Ptr& graph) { return graph ? graph->copy(nodes, depth + 1) : nullptr; };
  for (const auto& [id, node] : named_) {
    if (copy->unknown_ != GraphUnknown::none) return copy;
    copy->add(nodes == Nodes::same ? id : kept_.new_id(),
              {node.work, node.enabled, of(node.graph), id});
  }
  for (const auto& [work, count] : captured_)
    if (copy->take_room()) copy->captured_.emplace(work, count);
  for (const CapturedCollective& one : collectives_) copy->add_collective(one);
  for (const CapturedProduct& one : products_) copy->add_product(one);
  for (const Ptr& graph : launched_) {
    if (copy->unknown_ != GraphUnknown::none) return copy;
    copy->add_captured(of(graph));
  }
  return copy;
}

GraphHolding::NodeId GraphHolding::copy_of(NodeId original) const {
  for (const auto& [id, node] : named_)
    if (node.original == original) return id;
  return 0;
}

bool GraphHolding::disable_as_in(const GraphHolding& other) {
  for (const auto& [id, node] : other.named_) {
    if (!node.enabled) {
      Node* own = find(id);
      if (!own) return false;
      own->enabled = false;
    }
    if (node.graph && !disable_as_in(*node.graph)) return false;
  }
  return true;
}

GraphHolding::Node* GraphHolding::find(NodeId id, int depth) {
  if (depth > MAX_NESTED) return nullptr;
  if (auto at = named_.find(id); at != named_.end()) return &at->second;
  for (auto& [other, node] : named_)
    if (Node* inner = node.graph ? node.graph->find(id, depth + 1) : nullptr) return inner;
  return nullptr;
}

GraphUnknown GraphHolding::unknown(int depth) const {
  if (unknown_ != GraphUnknown::none) return unknown_;
  if (depth > MAX_NESTED) return GraphUnknown::too_many;
  auto of = [&](const Ptr& graph) {
    return graph ? graph->unknown(depth + 1) : GraphUnknown::none;
  };
  for (const auto& [id, node] : named_)
    if (GraphUnknown why = of(node.graph); why != GraphUnknown::none) return why;
  for (const Ptr& graph : launched_)
    if (GraphUnknown why = of(graph); why != GraphUnknown::none) return why;
  return GraphUnknown::none;
}

GraphHolding::Summary GraphHolding::summary() const {
  Summary summary;
  add_to(summary, false);
  return summary;
}

void GraphHolding::add_to(Summary& summary, bool conditional) const {
  auto count = [&](GraphOperation work, std::uint64_t times) {
    if (work.what == NodeWork::graph) return;  // the operations of that graph are counted instead
    work.conditional = conditional;
    std::uint64_t& known = summary.operations[work];
    known = saturating_sum(known, times);
    if (conditional) return;
    summary.nodes = saturating_sum(summary.nodes, times);
    if (work.what == NodeWork::kernel) summary.kernels = saturating_sum(summary.kernels, times);
  };
  for (const auto& [id, node] : named_) {
    if (!node.enabled) continue;
    count(node.work, 1);
    if (node.graph)
      node.graph->add_to(summary, conditional || node.work.what == NodeWork::conditional);
  }
  for (const auto& [work, times] : captured_) count(work, times);
  summary.collectives.insert(summary.collectives.end(), collectives_.begin(), collectives_.end());
  summary.products.insert(summary.products.end(), products_.begin(), products_.end());
  for (const Ptr& graph : launched_) graph->add_to(summary, conditional);
}

}  // namespace cudabpf
