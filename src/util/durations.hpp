// A histogram of durations: its quantiles are exact to 1.6 %, and adding a duration takes a few
// nanoseconds. It needs memory only for distinct values, since a trace may have tens of thousands
// of histograms with a few values each.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "util/saturating.hpp"

namespace cudabpf {

// The place, from 0, of the least of `count` sorted values that a share `q` of them do not exceed.
inline std::uint64_t quantile_rank(std::uint64_t count, double q) {
  constexpr double ROUNDING = 1e-9;  // 0.07 x 100 is more than 7
  double values = std::ceil(q * static_cast<double>(count) - ROUNDING);
  return std::min(values > 1 ? static_cast<std::uint64_t>(values) - 1 : 0, count ? count - 1 : 0);
}

class Durations {
 public:
  void add(std::uint64_t ns) {
    count_++;
    total_ = saturating_sum(total_, ns);
    if (ns > max_) max_ = ns;
    if (ns < min_) min_ = ns;
    count(bucket_of(ns), 1);
  }

  void add(const Durations& other) {
    count_ += other.count_;
    total_ = saturating_sum(total_, other.total_);
    max_ = std::max(max_, other.max_);
    min_ = std::min(min_, other.min_);
    for (const Bucket& bucket : other.buckets_)
      if (bucket.count()) count(bucket.number(), bucket.count());
  }

  std::uint64_t count() const { return count_; }
  std::uint64_t total() const { return total_; }
  std::uint64_t max() const { return max_; }
  std::uint64_t min() const { return count_ ? min_ : 0; }
  std::uint64_t mean() const { return count_ ? total_ / count_ : 0; }
  // In bytes, without the object itself.
  std::size_t memory() const { return buckets_.capacity() * sizeof(Bucket); }

  // The duration that a share `q` (0 to 1) of all durations do not exceed.
  std::uint64_t quantile(double q) const {
    std::uint64_t rank = quantile_rank(count_, q);
    if (rank + 1 >= count_) return max_;
    std::vector<Bucket> sorted;
    sorted.reserve(used_);
    for (const Bucket& bucket : buckets_)
      if (bucket.count()) sorted.push_back(bucket);
    std::sort(sorted.begin(), sorted.end(),
              [](const Bucket& a, const Bucket& b) { return a.number() < b.number(); });
    std::uint64_t seen = 0;
    for (const Bucket& bucket : sorted)
      if ((seen += bucket.count()) > rank)
        return std::clamp(middle_of(bucket.number()), min_, max_);
    return max_;
  }

 private:
  // Each doubling is divided into STEPS equal steps; each value below STEPS has its own bucket.
  static constexpr unsigned STEP_BITS = 5;
  static constexpr std::uint64_t STEPS = 1 << STEP_BITS;
  static constexpr unsigned MAX_BITS = 46;  // 19 hours; longer ones share the last bucket
  static constexpr std::size_t BUCKETS = (MAX_BITS - STEP_BITS + 1) * STEPS;

  // Its number and its count, in one word.
  class Bucket {
   public:
    Bucket() = default;
    explicit Bucket(std::size_t number) : word_(number) {}
    std::size_t number() const { return word_ % (1 << NUMBER_BITS); }
    std::uint64_t count() const { return word_ >> NUMBER_BITS; }  // 0: nothing is here
    void add(std::uint64_t more) { word_ += more << NUMBER_BITS; }

   private:
    static constexpr unsigned NUMBER_BITS = 11;
    static_assert(BUCKETS <= 1 << NUMBER_BITS);
    std::uint64_t word_ = 0;
  };

  static std::size_t bucket_of(std::uint64_t ns) {
    if (ns < STEPS) return ns;
    if (ns >> MAX_BITS) return BUCKETS - 1;
    auto shift = static_cast<unsigned>(std::bit_width(ns)) - STEP_BITS - 1;
    return shift * STEPS + (ns >> shift);
  }

  void count(std::size_t number, std::uint64_t more) {
    Bucket* bucket = buckets_.empty() ? nullptr : &place_of(number);
    if (!bucket || !bucket->count()) [[unlikely]] {
      if (is_full()) grow();
      bucket = &place_of(number);
      *bucket = Bucket(number);
      used_++;
    }
    bucket->add(more);
  }

  // Where the bucket is or goes: at its number's low bits, or after that.
  Bucket& place_of(std::size_t number) {
    std::size_t place = number & mask_;
    while (buckets_[place].count() && buckets_[place].number() != number)
      place = (place + 1) & mask_;
    return buckets_[place];
  }

  // A table of the full size never fills: it has a place for every bucket.
  bool is_full() const {
    return used_ >= buckets_.size() - buckets_.size() / 4 && buckets_.size() < BUCKETS;
  }
  void grow() {
    std::size_t size = std::max<std::size_t>(4, 2 * buckets_.size());
    std::vector<Bucket> old(std::min(size, BUCKETS));
    old.swap(buckets_);
    mask_ = size - 1;
    for (const Bucket& bucket : old)
      if (bucket.count()) place_of(bucket.number()) = bucket;
  }

  static std::uint64_t middle_of(std::size_t bucket) {
    if (bucket < 2 * STEPS) return bucket;
    std::size_t shift = bucket / STEPS - 1;
    std::uint64_t low = (bucket - shift * STEPS) << shift;
    return low + (std::uint64_t{1} << shift) / 2;
  }

  std::uint64_t count_ = 0, total_ = 0, max_ = 0;
  std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
  std::size_t used_ = 0, mask_ = 0;
  std::vector<Bucket> buckets_;  // a hash table
};

// The same of values that are kept one by one, the shortest first; there is at least one. Exact.
inline std::uint64_t quantile_of(std::span<const std::uint64_t> sorted, double q) {
  return sorted[quantile_rank(sorted.size(), q)];
}

}  // namespace cudabpf
