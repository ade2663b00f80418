#include "analyze/timeline/timeline_bars.hpp"

#include <algorithm>
#include <tuple>

namespace cudabpf::analyze {

const CategoryLook& look_of(Category category) {
  static constexpr std::array<CategoryLook, CATEGORIES + 1> LOOKS = {{
      {"init", "I", "i", "35", "#7b5fa8"},
      {"context", "C", "c", "95", "#b58fd8"},
      {"module", "L", "l", "33", "#c8963c"},
      {"memory", "M", "m", "34", "#2f6fb8"},
      {"transfer", "T", "t", "36", "#1f93a2"},
      {"kernel", "K", "k", "32", "#3f9b45"},
      {"graph", "G", "g", "92", "#6fae35"},
      {"wait", "░", "·", "31", "#f4c9c5", true},
      {"waiting copy", "▒", "-", "36", "#b5e3ea", true},
      {"captured", "P", "p", "93", "#a9a25a"},
      {"other", "O", "o", "37", "#8c8c8c"},
      {"unfinished", "U", "u", "91", "#ff2020"},
      {"driver", "D", "d", "90", "#555555"},
  }};
  return LOOKS[static_cast<std::size_t>(category)];
}

void Alike::add(const Alike& more) {
  count += more.count;
  launches += more.launches;
  untimed += more.untimed;
  time += more.time;
}

Bar::Bar(const Bar& other)
    : TimeSpan(other),
      inside(other.inside),
      first_(other.first_),
      several_(other.several_ ? std::make_unique<Several>(*other.several_) : nullptr) {}

void Bar::absorb(const Bar& other) {
  if (!several_) {
    several_ = std::make_unique<Several>();
    several_->parts.push_back(first_);
    several_->covered = first_.time;
  }
  std::uint64_t since = std::max(end, other.begin);
  if (other.end > since) several_->covered += std::min(other.covered(), other.end - since);
  begin = std::min(begin, other.begin);
  end = std::max(end, other.end);
  inside += other.inside;
  for (const Alike& part : other.parts()) take(part);
  if (other.several_) several_->others.add(other.several_->others);
}

void Bar::take(const Alike& part) {
  auto& parts = several_->parts;
  auto same = std::find_if(parts.begin(), parts.end(), [&](const Alike& one) {
    return one.name == part.name && one.what == part.what && one.category == part.category;
  });
  if (same != parts.end())
    same->add(part);
  else if (parts.size() < MOST_PARTS)
    parts.push_back(part);
  else
    several_->others.add(part);
}

std::span<const Alike> Bar::parts() const {
  if (several_) return several_->parts;
  return {&first_, 1};
}

Alike Bar::total() const {
  if (!several_) return first_;
  std::array<Alike, CATEGORIES + 1> by_category;
  for (const Alike& part : several_->parts)
    by_category[static_cast<std::size_t>(part.category)].add(part);
  by_category[static_cast<std::size_t>(Category::other)].add(several_->others);
  auto most =
      std::max_element(by_category.begin(), by_category.end(), [](const Alike& a, const Alike& b) {
        return std::tie(a.time, a.count) < std::tie(b.time, b.count);
      });
  Alike total;
  for (const Alike& one : by_category) total.add(one);
  total.category = static_cast<Category>(most - by_category.begin());
  return total;
}

void Bar::take_in(const Bar& within) {
  Alike total = within.total();
  inside += within.inside + total.count;
  first_.launches += total.launches;
}

void TimelineBars::add_around(BarRow& row, Bar bar) {
  auto has = [&](const Bar& other) {
    return other.begin >= bar.begin && other.end > bar.begin && other.end <= bar.end;
  };
  while (!row.empty() && has(row.back())) {
    bar.take_in(row.back());
    row.pop_back();
    count_--;
  }
  add(row, std::move(bar));
}

std::size_t TimelineBars::merge_row(BarRow& row) const {
  sort_bars(row);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < row.size(); i++) {
    if (kept && std::max(row[kept - 1].end, row[i].end) - row[kept - 1].begin <= resolution_)
      row[kept - 1].absorb(row[i]);
    else if (kept++ != i)
      row[kept - 1] = std::move(row[i]);
  }
  row.erase(row.begin() + static_cast<std::ptrdiff_t>(kept), row.end());
  return kept;
}

void sort_bars(BarRow& row) {
  auto earlier = [](const Bar& a, const Bar& b) { return a.begin < b.begin; };
  if (!std::is_sorted(row.begin(), row.end(), earlier))
    std::stable_sort(row.begin(), row.end(), earlier);
}

}  // namespace cudabpf::analyze
