// How busy a GPU was over time, by samples of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyze/merging.hpp"
#include "cudabpf/event.hpp"
#include "util/page/time_scale.hpp"

namespace cudabpf::analyze {

class GpuActivity {
 public:
  void add(const GpuSample& sample);
  // The mean SM activity in each column of a picture, in percent; nothing was sampled: 0.
  std::vector<std::uint64_t> columns(const TimeScale& scale) const;

 private:
  struct Stretch : TimeSpan {
    double active = 0;  // percent, the mean
    void merge(const Stretch& next);
  };
  static constexpr std::size_t MAX = 1 << 14;

  MergedSeries<Stretch> stretches_{MAX};
};

}  // namespace cudabpf::analyze
