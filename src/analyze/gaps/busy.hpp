// How long a GPU was busy. Three figures that must not be taken for one another: the sum of what
// ran, which counts twice what ran at once; the union, the time in which anything ran; and the
// overlap, in which two kinds ran at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "util/saturating.hpp"

namespace cudabpf::analyze {

// The union of stretches of time that come in the order of their beginnings.
class Union {
 public:
  void add(std::uint64_t begin, std::uint64_t end) {
    if (!any_ || begin > end_) {
      begin_ = begin;
      before_ = total();
      end_ = begin;
    }
    any_ = true;
    end_ = std::max(end_, end);
    here_ = end_ - begin_;
  }
  // Whether there is nothing from the end of all so far to this moment.
  bool is_gap_until(std::uint64_t begin) const { return any_ && begin > end_; }
  bool any() const { return any_; }
  std::uint64_t end() const { return end_; }
  std::uint64_t total() const { return before_ + here_; }

 private:
  bool any_ = false;
  std::uint64_t begin_ = 0, end_ = 0;    // of the last stretch
  std::uint64_t before_ = 0, here_ = 0;  // time in those before it, and in it
};

enum class GpuOp : std::uint8_t { kernel, copy, set };
inline constexpr std::size_t GPU_OPS = 3;

class Busy {
 public:
  struct OfOp {
    std::uint64_t count = 0, sum = 0;
    Union united;
  };

  // In the order of their beginnings.
  void add(GpuOp op, std::uint64_t begin, std::uint64_t end) {
    count(op, end - begin);
    of_[static_cast<std::size_t>(op)].united.add(begin, end);
    if (op != GpuOp::set) kernels_or_copies_.add(begin, end);
    all_.add(begin, end);
  }
  // An operation that came too late for the union; only its duration is added.
  void count(GpuOp op, std::uint64_t time) {
    OfOp& of = of_[static_cast<std::size_t>(op)];
    of.count++;
    of.sum = saturating_sum(of.sum, time);
  }

  const OfOp& of(GpuOp op) const { return of_[static_cast<std::size_t>(op)]; }
  const Union& all() const { return all_; }
  // Time in which a kernel and a copy ran at once.
  std::uint64_t overlap() const {
    return of(GpuOp::kernel).united.total() + of(GpuOp::copy).united.total() -
           kernels_or_copies_.total();
  }

 private:
  OfOp of_[GPU_OPS];
  Union kernels_or_copies_, all_;
};

}  // namespace cudabpf::analyze
