// Durations as a histogram: quantiles within 1.6 %, a few nanoseconds to add one, and memory for
// the range that they lie in alone.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace cudabpf {

class Durations {
 public:
  void add(std::uint64_t ns) {
    count_++;
    total_ += ns;
    if (ns > max_) max_ = ns;
    if (ns < min_) min_ = ns;
    at(bucket_of(ns))++;
  }

  void add(const Durations& other) {
    count_ += other.count_;
    total_ += other.total_;
    max_ = std::max(max_, other.max_);
    min_ = std::min(min_, other.min_);
    for (std::size_t i = 0; i < other.buckets_.size(); i++)
      if (other.buckets_[i]) at(other.first_ + i) += other.buckets_[i];
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
    for (std::size_t i = 0; i < buckets_.size(); i++)
      if ((seen += buckets_[i]) > rank) return std::clamp(middle_of(first_ + i), min_, max_);
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
  std::uint64_t& at(std::size_t bucket) {
    std::size_t place = bucket - first_;  // far beyond the end, if it comes before the first
    if (place >= buckets_.size()) [[unlikely]] {
      widen(bucket);
      place = bucket - first_;
    }
    return buckets_[place];
  }
  void widen(std::size_t bucket) {
    std::size_t begin = bucket / STEPS * STEPS, end = begin + STEPS;
    if (buckets_.empty()) first_ = begin;
    std::size_t first = std::min(first_, begin);
    buckets_.insert(buckets_.begin(), first_ - first, 0);
    first_ = first;
    if (end > first_ + buckets_.size()) buckets_.resize(end - first_);
  }

  static std::uint64_t middle_of(std::size_t bucket) {
    if (bucket < 2 * STEPS) return bucket;
    std::size_t shift = bucket / STEPS - 1;
    std::uint64_t low = (bucket - shift * STEPS) << shift;
    return low + (std::uint64_t{1} << shift) / 2;
  }

  std::uint64_t count_ = 0, total_ = 0, max_ = 0;
  std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
  std::size_t first_ = 0;               // bucket that buckets_ begins with
  std::vector<std::uint64_t> buckets_;  // those of whole doublings
};

}  // namespace cudabpf
