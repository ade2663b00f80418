#include "analyze/timeline/gpu_activity.hpp"

#include <algorithm>
#include <cmath>

namespace cudabpf::analyze {

void GpuActivity::add(const GpuSample& sample) {
  if (!sample.sm_active || !sample.window_ns || *sample.window_ns > sample.ts) return;
  Stretch stretch{{sample.ts - *sample.window_ns, sample.ts}, *sample.sm_active};
  // A window's length is rounded in the trace: it may reach a little into the one before.
  if (!stretches_.empty()) stretch.begin = std::max(stretch.begin, stretches_.back().end);
  if (stretch.begin >= stretch.end) return;
  if (in_last_ && in_last_ < windows_) {
    stretches_.back() = merged(stretches_.back(), stretch);
    in_last_++;
    return;
  }
  if (stretches_.size() == MOST) merge_pairs();
  stretches_.push_back(stretch);
  in_last_ = 1;
}

GpuActivity::Stretch GpuActivity::merged(const Stretch& a, const Stretch& b) {
  auto first = static_cast<double>(a.time()), second = static_cast<double>(b.time());
  return {{a.begin, b.end}, (a.active * first + b.active * second) / (first + second)};
}

void GpuActivity::merge_pairs() {
  for (std::size_t i = 0; i < stretches_.size() / 2; i++)
    stretches_[i] = merged(stretches_[2 * i], stretches_[2 * i + 1]);
  stretches_.resize(stretches_.size() / 2);
  windows_ *= 2;
}

std::vector<std::uint64_t> GpuActivity::columns(const TimeScale& scale) const {
  std::vector<double> sums(scale.width()), covered(scale.width());
  for (const TimeScale::Piece& piece : scale.pieces()) {
    auto first = std::partition_point(stretches_.begin(), stretches_.end(),
                                      [&](const Stretch& one) { return one.end <= piece.begin; });
    for (; first != stretches_.end() && first->begin < piece.end; ++first) {
      double from = piece.position(std::max(first->begin, piece.begin));
      double to = piece.position(std::min(first->end, piece.end));
      for (auto at = static_cast<std::size_t>(from); at < scale.width(); at++) {
        double left = std::max(from, static_cast<double>(at));
        double right = std::min(to, static_cast<double>(at + 1));
        if (left >= right) break;
        sums[at] += first->active * (right - left);
        covered[at] += right - left;
      }
    }
  }
  std::vector<std::uint64_t> means(scale.width());
  for (std::size_t at = 0; at < means.size(); at++)
    if (covered[at] > 0)
      means[at] = static_cast<std::uint64_t>(std::llround(sums[at] / covered[at]));
  return means;
}

}  // namespace cudabpf::analyze
