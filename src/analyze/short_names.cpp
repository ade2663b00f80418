#include "analyze/short_names.hpp"

#include <algorithm>

#include "analyze/derived/graph_contents.hpp"
#include "analyze/telling_names.hpp"
#include "analyze/work.hpp"

namespace cudabpf::analyze {

void ShortNames::line(const Line& line) {
  if (line.kind == LineKind::graph && line.content)
    for (const NodesAlike& nodes : line.content->list)
      if (nodes.kernel) learn(nodes.kernel);
  if (line.meaning->node == NodeWork::kernel && line.kernel && is_counted(line)) learn(line.kernel);
  if (line.kind == LineKind::gpu_operation && line.kernel) learn(line.kernel);
}

void ShortNames::settle() {
  settled_ = true;
  std::size_t apart = std::min(kernels_.size(), MAX_DISTINGUISHED);
  std::vector<std::string_view> names;
  for (std::size_t i = 1; i < apart; i++) names.push_back(names_.text(kernels_[i]));
  std::vector<std::string> telling = telling_names(names);
  for (std::size_t i = 1; i < kernels_.size(); i++) {
    std::string function = telling_names({names_.text(kernels_[i])}).front();
    std::vector<Name>& namesakes = namesakes_[function];
    if (namesakes.size() < NAMESAKES) namesakes.push_back(kernels_[i]);
    short_[i] = i < apart ? std::move(telling[i - 1]) : std::move(function);
  }
}

std::string ShortNames::of(Name kernel) const {
  bool known = kernel.id < places_.size() && places_[kernel.id];
  return known ? short_[places_[kernel.id]] : telling_names({names_.text(kernel)}).front();
}

void ShortNames::add(Name kernel) {
  places_[kernel.id] = static_cast<std::uint32_t>(short_.size());
  kernels_.push_back(kernel);
  short_.emplace_back();
  if (!settled_) return;
  short_.back() = telling_names({names_.text(kernel)}).front();
  if (late_++ >= LATE) return;
  std::vector<Name>& namesakes = namesakes_[short_.back()];
  std::vector<std::string_view> names;
  names.reserve(NAMESAKES + 1);
  for (Name namesake : namesakes) names.push_back(names_.text(namesake));
  names.push_back(names_.text(kernel));
  short_.back() = std::move(telling_names(names).back());
  if (namesakes.size() < NAMESAKES) namesakes.push_back(kernel);
}

}  // namespace cudabpf::analyze
