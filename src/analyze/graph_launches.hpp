// Launches of graphs: how often each graph was launched, and how many launches have unknown
// contents.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/derived/graph_contents.hpp"

namespace cudabpf::analyze {

class GraphLaunches {
 public:
  struct OfGraph {
    const LaunchedGraph* graph = nullptr;
    std::uint64_t launches = 0;
    std::uint64_t first = ~std::uint64_t{0}, last = 0;  // ts
    std::uint64_t runs() const;                         // of its kernels, in all launches
  };
  // Why a launch's contents are unknown: as a trace says it, and in words.
  struct Why {
    std::string_view name, text;
  };
  static constexpr std::size_t REASONS = 6;
  static const std::array<Why, REASONS>& reasons();

  explicit GraphLaunches(Names& names);

  // A line that launches a graph, and was neither captured nor failed.
  void launched(const Line& line);

  std::uint64_t known() const { return known_; }
  std::uint64_t unknown() const;
  // How many for each of the reasons.
  const std::array<std::uint64_t, REASONS>& unknown_by_reason() const { return unknown_; }
  std::uint64_t kernels() const { return kernels_; }  // run by launches of known contents
  std::vector<OfGraph> graphs() const;                // the most kernels first

 private:
  std::array<Name, REASONS> names_of_reasons_;
  std::array<std::uint64_t, REASONS> unknown_{};
  std::uint64_t known_ = 0, kernels_ = 0;
  std::unordered_map<const LaunchedGraph*, OfGraph> graphs_;
  OfGraph* last_ = nullptr;
};

// {"before": 3}
Json unknown_graphs_json(const GraphLaunches& graphs);
// "3 were made before the trace began, 1 was changed in a way that is not followed"
std::string why_unknown(const GraphLaunches& graphs);

}  // namespace cudabpf::analyze
