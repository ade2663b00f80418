#include "analyze/timeline/gpu_activity.hpp"

#include <algorithm>
#include <cmath>

namespace cudabpf::analyze {

void GpuActivity::add(const GpuSample& sample) {
  if (!sample.sm_active || !sample.window_ns || *sample.window_ns > sample.ts) return;
  Stretch stretch{{sample.ts - *sample.window_ns, sample.ts}, *sample.sm_active};
  // A window's length is rounded in the trace: it may reach a little into the one before.
  const auto& before = stretches_.items();
  if (!before.empty()) stretch.begin = std::max(stretch.begin, before.back().end);
  if (stretch.begin < stretch.end) stretches_.add(stretch);
}

void GpuActivity::Stretch::merge(const Stretch& next) {
  auto first = static_cast<double>(time()), second = static_cast<double>(next.time());
  active = (active * first + next.active * second) / (first + second);
  end = next.end;
}

std::vector<std::uint64_t> GpuActivity::columns(const TimeScale& scale) const {
  std::vector<double> sums(scale.width()), covered(scale.width());
  for (const TimeScale::Piece& piece : scale.pieces()) {
    const auto& all = stretches_.items();
    auto first = std::partition_point(all.begin(), all.end(),
                                      [&](const Stretch& one) { return one.end <= piece.begin; });
    for (; first != all.end() && first->begin < piece.end; ++first) {
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
