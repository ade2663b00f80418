#include "analyze/timeline/timeline_bars.hpp"

#include <algorithm>

namespace cudabpf::analyze {

const CategoryLook& look_of(Category category) {
  static constexpr std::array<CategoryLook, CATEGORIES + 1> LOOKS = {{
      {"init", 'I', "35", "#7b5fa8"},
      {"context", 'C', "95", "#b58fd8"},
      {"module", 'L', "33", "#c8963c"},
      {"memory", 'M', "34", "#2f6fb8"},
      {"transfer", 'T', "36", "#35a7b5"},
      {"kernel", 'K', "32", "#3f9b45"},
      {"graph", 'G', "92", "#8fcb5a"},
      {"sync", 'S', "31", "#c8443c"},
      {"other", 'O', "37", "#8c8c8c"},
      {"unfinished", 'U', "91", "#ff2020"},
      {"driver", 'd', "90", "#555555"},
  }};
  return LOOKS[static_cast<std::size_t>(category)];
}

// Lines come in the order in which calls ended. A bar within a later one is part of that.
void TimelineBars::add(Lane& lane, Row row, const Bar& bar) {
  auto& bars = lane[row];
  Bar whole = bar;
  while (!bars.empty() && bars.back().begin >= bar.begin && bars.back().end > bar.begin) {
    whole.count += bars.back().count;
    bars.pop_back();
    count_--;
  }
  bars.push_back(whole);
  count_++;
}

std::size_t TimelineBars::merge_row(std::vector<Bar>& row) const {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < row.size(); i++) {
    const Bar& bar = row[i];
    if (kept) {
      Bar& last = row[kept - 1];
      auto is_short = [&](const Bar& one) { return one.end - one.begin < resolution_; };
      bool near = bar.begin < last.end || bar.begin - last.end < resolution_;
      if (near && (bar.category == last.category || (is_short(bar) && is_short(last)))) {
        if (bar.busy > last.busy) last.category = bar.category;
        last.begin = std::min(last.begin, bar.begin);
        last.end = std::max(last.end, bar.end);
        last.count += bar.count;
        last.busy += bar.busy;
        if (bar.name != last.name) last.name = {};
        if (bar.what != last.what) last.what = {};
        continue;
      }
    }
    row[kept++] = bar;
  }
  row.resize(kept);
  return kept;
}

}  // namespace cudabpf::analyze
