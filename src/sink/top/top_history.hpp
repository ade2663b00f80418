// The last minute of what `cudabpf top` shows, and the sums of all intervals. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sink/top/top_model.hpp"

namespace cudabpf {

class TopHistory {
 public:
  static constexpr std::uint64_t SPAN_NS = 60'000'000'000;
  // Calls and launches a second; how active the GPUs are, in percent, as a mean over them; bytes.
  enum class Of : std::uint8_t { calls, launches, activity, held, count_ };

  void add(const TopInterval& interval);

  // The last minute in equal parts, the mean of each; nothing where it is not known.
  std::vector<std::optional<double>> parts(Of of, std::size_t count) const;
  // In the last minute.
  std::optional<double> most(Of of) const;
  std::optional<double> last(Of of) const;
  // Since watching began.
  const TopLosses& lost() const { return lost_; }

 private:
  struct Point {
    std::uint64_t begin = 0, end = 0;
    std::array<std::optional<double>, static_cast<std::size_t>(Of::count_)> values;
  };
  static std::optional<double> value(const Point& point, Of of) {
    return point.values[static_cast<std::size_t>(of)];
  }

  std::deque<Point> points_;
  TopLosses lost_;
};

// "63 %" of the time; nothing: it is not sampled.
std::optional<double> activity_of(const GpuFigures& gpu);

}  // namespace cudabpf
