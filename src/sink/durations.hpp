// Durations as a histogram of fixed size: quantiles within 1.6 %, a few nanoseconds to add one.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace cudabpf {

class Durations {
 public:
  void add(std::uint64_t ns) {
    count_++;
    total_ += ns;
    if (ns > max_) max_ = ns;
    if (ns < min_) min_ = ns;
    buckets_[bucket_of(ns)]++;
  }

  void add(const Durations& other) {
    count_ += other.count_;
    total_ += other.total_;
    max_ = std::max(max_, other.max_);
    min_ = std::min(min_, other.min_);
    for (std::size_t i = 0; i < BUCKETS; i++) buckets_[i] += other.buckets_[i];
  }

  std::uint64_t count() const { return count_; }
  std::uint64_t total() const { return total_; }
  std::uint64_t max() const { return max_; }
  std::uint64_t mean() const { return count_ ? total_ / count_ : 0; }

  // The duration that the part `q` (0 to 1) of all are not longer than.
  std::uint64_t quantile(double q) const {
    auto rank = static_cast<std::uint64_t>(q * static_cast<double>(count_));
    if (rank + 1 >= count_) return max_;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < BUCKETS; i++)
      if ((seen += buckets_[i]) > rank) return std::clamp(middle_of(i), min_, max_);
    return max_;
  }

 private:
  // Each doubling is divided into STEPS equal steps; what is below STEPS has a bucket of its own.
  static constexpr unsigned STEP_BITS = 5;
  static constexpr std::uint64_t STEPS = 1 << STEP_BITS;
  static constexpr unsigned MAX_BITS = 46;  // 19 hours; longer ones share the last bucket
  static constexpr std::size_t BUCKETS = (MAX_BITS - STEP_BITS + 1) * STEPS;

  static std::size_t bucket_of(std::uint64_t ns) {
    if (ns < STEPS) return ns;
    if (ns >> MAX_BITS) return BUCKETS - 1;
    auto shift = static_cast<unsigned>(std::bit_width(ns)) - STEP_BITS - 1;
    return shift * STEPS + (ns >> shift);
  }
  static std::uint64_t middle_of(std::size_t bucket) {
    if (bucket < 2 * STEPS) return bucket;
    std::size_t shift = bucket / STEPS - 1;
    std::uint64_t low = (bucket - shift * STEPS) << shift;
    return low + (std::uint64_t{1} << shift) / 2;
  }

  std::uint64_t count_ = 0, total_ = 0, max_ = 0;
  std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
  std::array<std::uint64_t, BUCKETS> buckets_{};
};

}  // namespace cudabpf
