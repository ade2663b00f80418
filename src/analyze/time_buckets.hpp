// A series of buckets over a trace whose length is not known yet: when there are too many,
// neighbours are merged, and each bucket covers twice the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyze/merging.hpp"

namespace cudabpf::analyze {

// A Bucket has merge(const Bucket& next), which adds the bucket that follows it.
template <typename Bucket>
class TimeBuckets {
 public:
  // At most this many are used; once the first merge is done, at least half.
  static constexpr std::size_t MAX = 2048;

  Bucket& at(std::uint64_t ns) {
    for (; ns >> shift_ >= MAX; shift_++) merge_pairs(buckets_);
    std::size_t index = ns >> shift_;
    if (index >= buckets_.size()) buckets_.resize(index + 1);
    return buckets_[index];
  }

  std::size_t size() const { return buckets_.size(); }
  const Bucket& operator[](std::size_t index) const { return buckets_[index]; }
  std::uint64_t width() const { return std::uint64_t{1} << shift_; }  // ns per bucket

 private:
  unsigned shift_ = 0;
  std::vector<Bucket> buckets_;
};

}  // namespace cudabpf::analyze
