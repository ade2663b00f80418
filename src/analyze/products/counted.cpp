#include "analyze/products/counted.hpp"

#include <algorithm>

#include "analyze/gpu_samples.hpp"

namespace cudabpf::analyze {

namespace {

// Samples must cover so much of the time: one may be late, but none may be missing.
constexpr double COVERED = 0.95;
// Activities are written in percent with one decimal.
constexpr double ROUNDED = 0.0005;

}  // namespace

void CountedActivity::sample(const Line& line) {
  GpuSample sample = sample_in(line);
  if (!sample.window_ns || !sample.tensor_active || !sample.dram_active || windows_.size() == MOST)
    return;
  several_ |= gpu_ && *gpu_ != sample.device;
  gpu_ = sample.device;
  windows_.push_back({sample.ts - std::min(*sample.window_ns, sample.ts), sample.ts,
                      *sample.tensor_active, *sample.dram_active});
}

void CountedActivity::ran(std::uint64_t ts, double half_flop, double bytes) {
  if (!last_) first_ = ts;
  first_ = std::min(first_, ts);
  last_ = std::max(last_, ts);
  needed_.at(ts).merge({half_flop, bytes});
}

std::optional<CountedActivity::Totals> CountedActivity::totals() const {
  if (several_ || windows_.empty() || !last_) return std::nullopt;
  std::uint64_t read_until = windows_.back().to;
  if (read_until < BEHIND) return std::nullopt;
  std::uint64_t until = std::min(last_ + 1, read_until - BEHIND);
  Totals totals;
  double covered = 0;
  for (const Window& window : windows_) {
    if (window.to <= first_ || window.from >= until + BEHIND) continue;
    auto length = static_cast<double>(window.to - window.from);
    covered += length;
    totals.tensor_ns += window.tensor / 100 * length;
    totals.dram_ns += window.dram / 100 * length;
  }
  if (until <= first_ || covered < COVERED * static_cast<double>(until + BEHIND - first_))
    return std::nullopt;
  totals.doubt_ns = ROUNDED * covered;
  for (std::size_t i = 0; i < needed_.size(); i++) {
    if (i * needed_.width() >= until) break;
    if ((i + 1) * needed_.width() > until && until <= last_) break;  // some of it may be later
    totals.half_flop += needed_[i].half_flop;
    totals.bytes += needed_[i].bytes;
  }
  return totals;
}

}  // namespace cudabpf::analyze
