#include "correlate/graphs/launched_contents.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "util/hash.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t MAX_LISTED = 1000;  // operations of a content

std::uint64_t hash_of_summary(const GraphHolding::Summary& summary) {
  std::uint64_t sum = 0;  // the operations are in no particular order
  for (const auto& [work, count] : summary.operations)
    sum += hash_of(GraphOperationHash()(work), count);
  for (const CapturedCollective& one : summary.collectives) sum = hash_of(sum, one.call);
  for (const CapturedProduct& one : summary.products) sum = hash_of(sum, one.shape);
  return hash_of(summary.nodes, summary.kernels, sum);
}

bool says(const GraphContent& content, const GraphHolding::Summary& summary) {
  auto same = [&](const auto& work) {
    auto known = summary.operations.find(work.first);
    return known != summary.operations.end() && known->second == work.second;
  };
  return content.nodes == summary.nodes && content.kernels == summary.kernels &&
         content.collectives == summary.collectives && content.products == summary.products &&
         std::min(summary.operations.size(), MAX_LISTED) == content.operations.size() &&
         std::all_of(content.operations.begin(), content.operations.end(), same);
}

// Kernels first, the most frequent first, and always in the same order.
bool comes_before(const std::pair<GraphOperation, std::uint64_t>& a,
                  const std::pair<GraphOperation, std::uint64_t>& b) {
  auto name = [](const GraphOperation& work) {
    return work.kernel ? std::string_view(work.kernel->mangled) : std::string_view();
  };
  auto key = [&](const auto& of) {
    const GraphOperation& work = of.first;
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
  std::size_t listed = std::min(summary.operations.size(), MAX_LISTED);
  std::size_t room = listed + summary.collectives.size() + summary.products.size();
  if (contents_.size() >= MAX || !kept_.take_if_there_is(room)) return nullptr;
  operations_ += room;
  auto made = std::make_unique<GraphContent>();
  made->number = number;
  made->pid = launch.pid;
  made->nodes = summary.nodes;
  made->kernels = summary.kernels;
  made->collectives = summary.collectives;
  made->products = summary.products;
  made->operations.assign(summary.operations.begin(), summary.operations.end());
  std::sort(made->operations.begin(), made->operations.end(), comes_before);
  for (std::size_t i = listed; i < made->operations.size(); i++)
    made->more += made->operations[i].first.conditional ? 0 : made->operations[i].second;
  made->operations.resize(listed);
  made->operations.shrink_to_fit();
  return contents_.emplace(hash_of_summary(summary), std::move(made))->second.get();
}

void LaunchedContents::clear() {
  contents_.clear();
  kept_.give_back(operations_);
  operations_ = 0;
}

}  // namespace cudabpf
