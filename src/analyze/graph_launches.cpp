#include "analyze/graph_launches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "util/console/terminal.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

const std::array<GraphLaunches::Why, GraphLaunches::REASONS>& GraphLaunches::reasons() {
  static constexpr std::array<Why, REASONS> ALL = {{
      {to_string(GraphUnknown::before), "of graphs made before the trace began"},
      {to_string(GraphUnknown::lost), "after calls were lost"},
      {to_string(GraphUnknown::not_recorded), "of graphs made by functions that are not traced"},
      {to_string(GraphUnknown::changed), "of graphs changed in a way that is not followed"},
      {to_string(GraphUnknown::too_many), "of graphs that were too many or too large to follow"},
      {"not_told", "of which the trace says nothing"},
  }};
  return ALL;
}

GraphLaunches::GraphLaunches(Names& names) {
  for (std::size_t i = 0; i < REASONS; i++) names_of_reasons_[i] = names.add(reasons()[i].name);
}

std::uint64_t GraphLaunches::OfGraph::runs() const {
  return saturating_product(launches, graph->kernels);
}

void GraphLaunches::launched(const Line& line) {
  if (!line.content) {
    auto why = std::find(names_of_reasons_.begin(), names_of_reasons_.end(), line.graph_unknown);
    std::size_t unspecified = REASONS - 1;
    unknown_[std::min(unspecified, static_cast<std::size_t>(why - names_of_reasons_.begin()))]++;
    return;
  }
  known_++;
  kernels_ = saturating_sum(kernels_, line.content->kernels);
  if (!last_ || last_->graph != line.content) last_ = &graphs_[line.content];
  last_->graph = line.content;
  last_->launches++;
  last_->first = std::min(last_->first, line.ts);
  last_->last = std::max(last_->last, line.ts);
}

std::uint64_t GraphLaunches::unknown() const {
  return std::accumulate(unknown_.begin(), unknown_.end(), std::uint64_t{0});
}

std::vector<GraphLaunches::OfGraph> GraphLaunches::graphs() const {
  std::vector<OfGraph> all;
  for (const auto& [graph, of] : graphs_) all.push_back(of);
  std::sort(all.begin(), all.end(), [](const OfGraph& a, const OfGraph& b) {
    return std::tuple(b.runs(), b.launches, a.graph->number) <
           std::tuple(a.runs(), a.launches, b.graph->number);
  });
  return all;
}

Json unknown_graphs_json(const GraphLaunches& graphs) {
  Json json = Json::object();
  for (std::size_t i = 0; i < GraphLaunches::REASONS; i++)
    if (std::uint64_t count = graphs.unknown_by_reason()[i])
      json[std::string(GraphLaunches::reasons()[i].name)] = count;
  return json;
}

std::string why_unknown(const GraphLaunches& graphs) {
  std::string text;
  for (std::size_t i = 0; i < GraphLaunches::REASONS; i++)
    if (std::uint64_t count = graphs.unknown_by_reason()[i])
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", with_commas(count),
                          GraphLaunches::reasons()[i].text);
  return text;
}

}  // namespace cudabpf::analyze
