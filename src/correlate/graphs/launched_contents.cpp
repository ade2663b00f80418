#include "correlate/graphs/launched_contents.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "util/hash.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t MOST_LISTED = 1000;  // works of a content

std::uint64_t hash_of_summary(const GraphHolding::Summary& summary) {
  std::uint64_t sum = 0;  // they are in no particular order
  for (const auto& [work, count] : summary.works) sum += hash_of(GraphWorkHash()(work), count);
  return hash_of(summary.nodes, summary.kernels, sum);
}

bool says(const GraphContent& content, const GraphHolding::Summary& summary) {
  auto same = [&](const auto& work) {
    auto known = summary.works.find(work.first);
    return known != summary.works.end() && known->second == work.second;
  };
  return content.nodes == summary.nodes && content.kernels == summary.kernels &&
         std::min(summary.works.size(), MOST_LISTED) == content.works.size() &&
         std::all_of(content.works.begin(), content.works.end(), same);
}

// Kernels first, the most frequent first, and always in the same order.
bool comes_before(const std::pair<GraphWork, std::uint64_t>& a,
                  const std::pair<GraphWork, std::uint64_t>& b) {
  auto name = [](const GraphWork& work) {
    return work.kernel ? std::string_view(work.kernel->mangled) : std::string_view();
  };
  auto key = [&](const auto& of) {
    const GraphWork& work = of.first;
    return std::tuple(work.conditional, work.what, ~of.second, name(work), work.handle, work.grid.x,
                      work.grid.y, work.grid.z, work.block.x, work.block.y, work.block.z,
                      work.shared, work.size);
  };
  return key(a) < key(b);
}

}  // namespace

const GraphContent* LaunchedContents::find(const GraphHolding::Summary& summary) const {
  auto [first, last] = contents_.equal_range(hash_of_summary(summary));
  for (auto at = first; at != last; ++at)
    if (says(*at->second, summary)) return at->second.get();
  return nullptr;
}

const GraphContent* LaunchedContents::add(const GraphHolding::Summary& summary,
                                          std::uint64_t number, const Call& launch) {
  std::size_t listed = std::min(summary.works.size(), MOST_LISTED);
  if (contents_.size() >= MOST || !kept_.take_if_there_is(listed)) return nullptr;
  works_ += listed;
  auto made = std::make_unique<GraphContent>();
  made->number = number;
  made->pid = launch.pid;
  made->nodes = summary.nodes;
  made->kernels = summary.kernels;
  made->works.assign(summary.works.begin(), summary.works.end());
  std::sort(made->works.begin(), made->works.end(), comes_before);
  for (std::size_t i = listed; i < made->works.size(); i++)
    made->more += made->works[i].first.conditional ? 0 : made->works[i].second;
  made->works.resize(listed);
  made->works.shrink_to_fit();
  return contents_.emplace(hash_of_summary(summary), std::move(made))->second.get();
}

void LaunchedContents::clear() {
  contents_.clear();
  kept_.give_back(works_);
  works_ = 0;
}

}  // namespace cudabpf
