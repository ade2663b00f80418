#include "sink/top/top_history.hpp"

#include <algorithm>

namespace cudabpf {

std::optional<double> activity_of(const GpuFigures& gpu) {
  auto active = gpu.sm_active.mean();
  return active ? active : gpu.utilization.mean();
}

void TopHistory::add(const TopInterval& interval) {
  constexpr std::uint64_t LEAST_NS = 1;
  Point point{interval.begin_ns, std::max(interval.end_ns, interval.begin_ns + LEAST_NS), {}};
  double seconds = static_cast<double>(point.end - point.begin) / 1e9;
  auto set = [&](Of of, double value) { point.values[static_cast<std::size_t>(of)] = value; };
  set(Of::calls, static_cast<double>(interval.all.calls) / seconds);
  set(Of::launches, static_cast<double>(interval.all.launches) / seconds);
  std::uint64_t held = 0;
  for (const TopProcess& process : interval.processes) held += process.held;
  set(Of::held, static_cast<double>(held));
  MeanOverTime activity;  // over GPUs
  for (const auto& [device, gpu] : interval.gpus.gpus())
    if (auto active = activity_of(gpu)) activity.add(*active, 1);
  if (auto mean = activity.mean()) set(Of::activity, *mean);
  points_.push_back(point);
  while (points_.front().end + SPAN_NS <= point.end) points_.pop_front();
  lost_.add(interval.lost);
}

// Parts begin at multiples of their length, so that a curve moves without flickering.
std::vector<std::optional<double>> TopHistory::parts(Of of, std::size_t count) const {
  std::vector<MeanOverTime> means(count);
  std::vector<std::optional<double>> parts(count);
  if (!count || points_.empty()) return parts;
  std::uint64_t length = SPAN_NS / count;
  std::uint64_t end = (points_.back().end + length - 1) / length;  // in parts since the beginning
  std::uint64_t first = end > count ? end - count : 0;
  for (const Point& point : points_) {
    auto at = value(point, of);
    if (!at) continue;
    for (std::uint64_t part = std::max(first, point.begin / length);
         part < end && part * length < point.end; part++) {
      std::uint64_t from = std::max(point.begin, part * length),
                    to = std::min(point.end, (part + 1) * length);
      if (from < to) means[part + count - end].add(*at, static_cast<double>(to - from));
    }
  }
  for (std::size_t i = 0; i < count; i++) parts[i] = means[i].mean();
  return parts;
}

std::optional<double> TopHistory::most(Of of) const {
  std::optional<double> most;
  for (const Point& point : points_)
    if (auto at = value(point, of)) most = std::max(most.value_or(0), *at);
  return most;
}

std::optional<double> TopHistory::last(Of of) const {
  return points_.empty() ? std::nullopt : value(points_.back(), of);
}

}  // namespace cudabpf
