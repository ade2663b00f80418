// What a picture over time is drawn from: a bar for each call while there are few. If there are
// many, close ones become one, which knows what it stands for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "analyze/lanes/call_category.hpp"
#include "analyze/lanes/merged_rows.hpp"
#include "trace/read/names.hpp"
#include "util/page/time_scale.hpp"

namespace cudabpf::analyze {

// Calls of one function, for one kernel (or what else they are about).
struct Alike {
  Name name, what;
  Category category = Category::other;
  std::uint32_t count = 0;
  std::uint32_t launches = 0;  // of the driver's operations: ioctls
  std::uint32_t untimed = 0;   // whose duration is not known
  std::uint64_t time = 0;      // ns

  void add(const Alike& more);
};

class Bar : public TimeSpan {
 public:
  static constexpr unsigned FINEST = 4, COARSEST = 64;
  static constexpr bool MERGES_AT_ONCE = false;

  std::uint64_t inside = 0;  // calls that were made inside of these, and are no bars

  Bar(const TimeSpan& when, const Alike& one) : TimeSpan(when), first_(one) {}
  Bar(const Bar& other);
  Bar(Bar&&) = default;
  Bar& operator=(Bar&&) = default;
  Bar& operator=(const Bar&) = delete;

  // ns; 0: no two are one.
  static constexpr std::uint64_t time_of(unsigned resolution) {
    if (resolution == COARSEST) return std::numeric_limits<std::uint64_t>::max();
    return resolution ? std::uint64_t{1} << resolution : 0;
  }
  static bool comes_before(const Bar& a, const Bar& b) { return a.begin < b.begin; }
  static bool are_one(const Bar& a, const Bar& b, unsigned resolution) {
    return std::max(a.end, b.end) - a.begin <= time_of(resolution);
  }
  // Takes what another one stands for, which did not begin before this one.
  void absorb(const Bar& other);
  // Counts what another one stands for as made inside of it; this one is a single call.
  void take_in(const Bar& within);
  // What it stands for, each function and kernel once, except those beyond the limit.
  std::span<const Alike> parts() const;
  const Alike* others() const { return several_ ? &several_->others : nullptr; }
  Alike total() const;  // without name; of the category that took most
  bool is_one() const { return !several_; }
  // Time in which at least one of them was under way.
  std::uint64_t covered() const { return several_ ? several_->covered : first_.time; }

 private:
  static constexpr std::size_t MAX_PARTS = 64;
  struct Several {
    std::vector<Alike> parts;
    Alike others;
    std::uint64_t covered = 0;
  };
  void take(const Alike& part);

  Alike first_;
  std::unique_ptr<Several> several_;  // null: `first_` is all
};

// Those of one row of a picture, in the order in which they began.
using BarRow = std::vector<Bar>;

// Calls `each` with the bars of the row that reach into [begin, end), those within `resolution`
// together.
template <typename Each>
void each_group(const BarRow& row, std::uint64_t begin, std::uint64_t end, std::uint64_t resolution,
                Each&& each) {
  for (std::size_t i = 0; i < row.size();) {
    std::size_t first = i++;
    std::uint64_t from = row[first].begin, to = row[first].end;
    if (from >= end) break;
    if (to < begin || (to == begin && from < begin)) continue;
    for (; i < row.size() && row[i].begin < end; i++) {
      if (std::max(to, row[i].end) - from > resolution) break;
      to = std::max(to, row[i].end);
    }
    each(std::span(row).subspan(first, i - first));
  }
}
// The same, each group as one bar.
template <typename Each>
void each_bar(const BarRow& row, std::uint64_t begin, std::uint64_t end, std::uint64_t resolution,
              Each&& each) {
  each_group(row, begin, end, resolution, [&](std::span<const Bar> group) {
    if (group.size() == 1) return each(group.front());
    Bar whole = group.front();
    for (const Bar& bar : group.subspan(1)) whole.absorb(bar);
    each(whole);
  });
}

}  // namespace cudabpf::analyze
