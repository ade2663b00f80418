// How busy a GPU was over time, by samples of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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
  };
  static constexpr std::size_t MOST = 1 << 14;  // beyond that, each two become one

  static Stretch merged(const Stretch& a, const Stretch& b);
  void merge_pairs();

  std::vector<Stretch> stretches_;         // in order of time
  std::size_t windows_ = 1, in_last_ = 0;  // in a stretch; in the last one so far
};

}  // namespace cudabpf::analyze
