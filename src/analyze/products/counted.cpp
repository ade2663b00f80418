#include "analyze/products/counted.hpp"

#include <algorithm>

#include "cudabpf/event.hpp"

namespace cudabpf::analyze {

namespace {

// Between samples, at most this share of the time: each covers what was since the one before.
constexpr double UNCOVERED = 0.005;
// Activities are written in percent with one decimal.
constexpr double ROUNDED = 0.0005;

}  // namespace

void CountedActivity::sample(const GpuSample& sample) {
  if (!sample.window_ns || !sample.tensor_active || !sample.dram_active || windows_.size() == MAX)
    return;
  several_ |= gpu_ && *gpu_ != sample.device;
  gpu_ = sample.device;
  windows_.push_back({sample.ts - std::min(*sample.window_ns, sample.ts), sample.ts,
                      *sample.tensor_active, *sample.dram_active});
}

void CountedActivity::ran(std::uint64_t began, std::uint64_t ended, double half_flop,
                          double bytes) {
  first_ = last_ ? std::min(first_, began) : began;
  last_ = std::max({last_, ended, std::uint64_t{1}});
  needed_.at(ended).merge({half_flop, bytes});
}

std::optional<CountedActivity::Totals> CountedActivity::totals() const {
  if (several_ || windows_.empty() || !last_ || windows_.back().to < BEHIND) return std::nullopt;
  std::uint64_t until = std::min(last_, windows_.back().to - BEHIND);
  std::uint64_t covered_to = first_, uncovered = 0;
  Totals totals;
  for (const Window& window : windows_) {
    if (window.to <= first_ || window.from >= until + BEHIND) continue;
    auto length = static_cast<double>(window.to - window.from);
    if (window.from > covered_to) uncovered += window.from - covered_to;
    covered_to = std::max(covered_to, window.to);
    totals.tensor_ns += window.tensor / 100 * length;
    totals.dram_ns += window.dram / 100 * length;
    totals.doubt_ns += ROUNDED * length;
  }
  if (until <= first_ || covered_to < until + BEHIND ||
      static_cast<double>(uncovered) > UNCOVERED * static_cast<double>(covered_to - first_))
    return std::nullopt;
  for (std::size_t i = 0; i < needed_.size(); i++) {
    if (until < last_ && (i + 1) * needed_.width() > until) break;  // it may have run later
    totals.half_flop += needed_[i].half_flop;
    totals.bytes += needed_[i].bytes;
  }
  return totals;
}

}  // namespace cudabpf::analyze
