#include "analyze/ranges/ranges.hpp"

#include <tuple>

#include "analyze/work.hpp"
#include "trace/header.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

void RangeFigures::add_range(const Line& line) {
  count++;
  if (!line.has(Field::duration)) return;
  timed++;
  total = saturating_sum(total, line.duration);
  longest = std::max(longest, line.duration);
  shortest = std::min(shortest, line.duration);
}

void RangeFigures::add_work(const RangeFigures& other) {
  calls += other.calls;
  launches = saturating_sum(launches, other.launches);
  gpu = saturating_sum(gpu, other.gpu);
  waits = saturating_sum(waits, other.waits);
}

void RangeFigures::add(const RangeFigures& other) {
  count += other.count;
  timed += other.timed;
  total = saturating_sum(total, other.total);
  longest = std::max(longest, other.longest);
  shortest = std::min(shortest, other.shortest);
  add_work(other);
}

void RangeTotals::line(const Line& line) {
  switch (line.kind) {
    case LineKind::range:
      return range(line);
    case LineKind::call: {
      if (!is_counted(line)) return;
      RangeFigures& here = figures_at(line.place);
      here.calls++;
      here.launches = saturating_sum(here.launches, kernel_runs(line));
      if (waits(line.work, line)) here.waits = saturating_sum(here.waits, line.duration);
      return;
    }
    case LineKind::gpu_operation: {
      RangeFigures& here = figures_at(line.place);
      here.gpu = saturating_sum(here.gpu, line.duration);
      gpu_ = saturating_sum(gpu_, line.duration);
      return;
    }
    default:
      return;
  }
}

void RangeTotals::range(const Line& line) {
  if (names_.text(line.op) == "mark") {
    marks_++;
    return;
  }
  unfinished_ += line.unfinished || line.return_lost;
  if (!line.place)
    unnamed_++;
  else
    figures_at(line.place).add_range(line);
}

RangeFigures& RangeTotals::figures_at(const RangePlace* place) {
  if (!place) return in_none_;
  if (nodes_.size() <= place->number) nodes_.resize(place->number + 1);
  nodes_[place->number].place = place;
  // One around it may have nothing of its own.
  for (const RangePlace* around = place->around; around && !nodes_[around->number].place;
       around = around->around)
    nodes_[around->number].place = around;
  return nodes_[place->number].figures;
}

// What is around a place comes before it. Whether names are shown together depends on how many
// there are, so all of one depth are looked at before those inside them.
std::vector<RangeTotals::Shown> RangeTotals::put_together() const {
  std::vector<std::vector<const Node*>> by_depth;
  std::vector<std::size_t> shown_as(nodes_.size());
  for (const Node& node : nodes_) {
    if (!node.place) continue;
    if (by_depth.size() <= node.place->depth) by_depth.resize(node.place->depth + 1);
    by_depth[node.place->depth].push_back(&node);
  }
  using Named = std::tuple<std::size_t, std::string, std::string>;
  std::vector<Shown> all;
  for (const auto& nodes : by_depth) {
    auto key_of = [&](const Node& node, bool folded) {
      const RangePlace& place = *node.place;
      std::string_view name = names_.text(place.name);
      return Named{place.around ? shown_as[place.around->number] : 0,
                   folded ? without_digits(name) : std::string(name),
                   std::string(names_.text(place.domain))};
    };
    std::map<Named, std::map<std::string, int>> alike;
    for (const Node* node : nodes)
      alike[key_of(*node, true)][std::string(names_.text(node->place->name))]++;
    std::map<Named, std::size_t> known;
    for (const Node* node : nodes) {
      const auto& names = alike[key_of(*node, true)];
      bool folded = names.size() > MOST_ALIKE;
      Named key = key_of(*node, folded);
      auto [at, is_new] = known.try_emplace(key, all.size() + 1);
      if (is_new) {
        Shown& one = all.emplace_back();
        std::tie(one.around, one.name, one.domain) = key;
        if (one.around) all[one.around - 1].inside.push_back(at->second);
      }
      shown_as[node->place->number] = at->second;
      Shown& one = all[at->second - 1];
      one.names = folded ? one.names + node->place->names : 1;
      one.figures.add(node->figures);
      one.gpu_here = saturating_sum(one.gpu_here, node->figures.gpu);
    }
  }
  // From the innermost outwards: those inside come behind those around them.
  for (std::size_t i = all.size(); i > 0; i--)
    if (std::size_t around = all[i - 1].around)
      all[around - 1].figures.add_work(all[i - 1].figures);
  return all;
}

void RangeTotals::add_rows(std::vector<Shown>& all, std::vector<std::size_t> which,
                           std::vector<std::string>& path) {
  std::stable_sort(which.begin(), which.end(), [&](std::size_t a, std::size_t b) {
    return all[a - 1].figures.total > all[b - 1].figures.total;
  });
  for (std::size_t one : which) {
    Shown& shown = all[one - 1];
    // Names that a trace makes up are not to take memory once more for each range in them.
    constexpr std::size_t MOST_TEXT = std::size_t{64} << 20;
    for (const std::string& around : path) path_text_ += sizeof(std::string) + around.size();
    rows_.push_back({shown.name, shown.domain,
                     path_text_ > MOST_TEXT ? std::vector<std::string>() : path, path.size(),
                     shown.names, shown.figures, shown.gpu_here});
    path.push_back(shown.name);
    add_rows(all, std::move(shown.inside), path);
    path.pop_back();
  }
}

void RangeTotals::finish(const TraceFacts& facts) {
  were_recorded_ = facts.header.ranges;
  std::vector<Shown> all = put_together();
  std::vector<std::size_t> outermost;
  for (std::size_t i = 0; i < all.size(); i++)
    if (!all[i].around) outermost.push_back(i + 1);
  std::vector<std::string> path;
  add_rows(all, std::move(outermost), path);
}

}  // namespace cudabpf::analyze
