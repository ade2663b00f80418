// The contents of graphs that were launched in one process, each kept once.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "correlate/graphs/graph_holding.hpp"
#include "cudabpf/event.hpp"

namespace cudabpf {

class LaunchedContents {
 public:
  explicit LaunchedContents(KeptNodes& kept) : kept_(kept) {}
  ~LaunchedContents() { clear(); }
  LaunchedContents(const LaunchedContents&) = delete;
  LaunchedContents& operator=(const LaunchedContents&) = delete;

  // Null: no content equals it.
  const GraphContent* find(const GraphHolding::Summary& summary) const;
  // Adds one with this number, for this launch. Null: there is no room for it.
  const GraphContent* add(const GraphHolding::Summary& summary, std::uint64_t number,
                          const Call& launch);
  void clear();

  template <typename Visit>
  void each_work(Visit&& visit) const {
    for (const auto& [hash, content] : contents_)
      for (const auto& [work, count] : content->operations) visit(work);
  }

 private:
  static constexpr std::size_t MAX = 4096;

  KeptNodes& kept_;
  std::size_t operations_ = 0;  // with collectives and products, of all
  std::unordered_multimap<std::uint64_t, std::unique_ptr<GraphContent>> contents_;  // by hash
};

}  // namespace cudabpf
