#include "analyze/ranges/ranges.hpp"

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
  return nodes_[place->number].figures;
}

std::vector<RangeTotals::Shown> RangeTotals::put_together() const {
  ShownRanges ranges(names_);
  for (const Node& node : nodes_) ranges.add(node.place);
  ranges.settle();
  std::vector<Shown> all;
  for (const ShownRanges::Row& row : ranges.rows()) {
    all.emplace_back().row = row;
    if (row.around) all[row.around - 1].inside.push_back(all.size());
  }
  for (const Node& node : nodes_) {
    if (!node.place) continue;
    Shown& one = all[ranges.row_of(*node.place)];
    one.figures.add(node.figures);
    one.gpu_here = saturating_sum(one.gpu_here, node.figures.gpu);
  }
  // From the innermost outwards: those inside come behind those around them.
  for (std::size_t i = all.size(); i > 0; i--)
    if (std::size_t around = all[i - 1].row.around)
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
    constexpr std::size_t MAX_TEXT = std::size_t{64} << 20;
    for (const std::string& around : path) path_text_ += sizeof(std::string) + around.size();
    rows_.push_back({shown.row.name, shown.row.domain,
                     path_text_ > MAX_TEXT ? std::vector<std::string>() : path, path.size(),
                     shown.row.names, shown.figures, shown.gpu_here});
    path.push_back(shown.row.name);
    add_rows(all, std::move(shown.inside), path);
    path.pop_back();
  }
}

void RangeTotals::finish(const TraceFacts& facts) {
  were_recorded_ = facts.header.ranges;
  std::vector<Shown> all = put_together();
  std::vector<std::size_t> outermost;
  for (std::size_t i = 0; i < all.size(); i++)
    if (!all[i].row.around) outermost.push_back(i + 1);
  std::vector<std::string> path;
  add_rows(all, std::move(outermost), path);
}

// Those around the ones that are asked for may have no range of their own.
std::vector<RangeTotals::Row> RangeTotals::outermost() const {
  std::vector<Row> found;
  for (std::size_t above = 0;; above = found.front().depth + 1) {
    std::vector<Row> here;
    bool inside = false;  // of the last of them
    for (const Row& row : rows_) {
      inside = inside && row.depth > here.back().depth;
      if (inside || !row.figures.count || row.depth < above) continue;
      here.push_back(row);
      inside = true;
    }
    if (here.empty()) return found;
    found = std::move(here);
    if (found.size() > 1) return found;
  }
}

}  // namespace cudabpf::analyze
