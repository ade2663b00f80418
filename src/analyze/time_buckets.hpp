// A row of buckets over the time of a trace whose length is not known yet: when it gets too long,
// neighbours are merged, and each bucket stands for twice the time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cudabpf::analyze {

// A Bucket has merge(const Bucket& next), of the one that comes after it.
template <typename Bucket>
class TimeBuckets {
 public:
  // Between half of this many and all of them are used.
  static constexpr std::size_t MOST = 2048;

  Bucket& at(std::uint64_t ns) {
    while (ns >> shift_ >= MOST) halve();
    std::size_t index = ns >> shift_;
    if (index >= buckets_.size()) buckets_.resize(index + 1);
    return buckets_[index];
  }

  // Shows each bucket that [begin, end) lies in how much of that it has.
  template <typename Add>
  void spread(std::uint64_t begin, std::uint64_t end, Add&& add) {
    if (begin >= end) return;
    at(end - 1);
    for (std::size_t i = begin >> shift_; begin < end; i++) {
      std::uint64_t until = std::min(end, begin_of(i + 1));
      add(buckets_[i], until - begin);
      begin = until;
    }
  }

  std::size_t size() const { return buckets_.size(); }
  const Bucket& operator[](std::size_t index) const { return buckets_[index]; }
  std::uint64_t width() const { return std::uint64_t{1} << shift_; }  // ns that each stands for
  std::uint64_t begin_of(std::size_t index) const { return std::uint64_t{index} << shift_; }

 private:
  void halve() {
    for (std::size_t i = 0; i < buckets_.size(); i++) {
      if (i % 2)
        buckets_[i / 2].merge(buckets_[i]);
      else if (i)
        buckets_[i / 2] = buckets_[i];
    }
    buckets_.resize((buckets_.size() + 1) / 2);
    shift_++;
  }

  unsigned shift_ = 0;
  std::vector<Bucket> buckets_;
};

}  // namespace cudabpf::analyze
