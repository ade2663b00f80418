// How long a GPU was busy. Three figures that must not be taken for one another: the sum of what
// ran, which counts twice what ran at once; the union, the time in which anything ran; and the
// overlap, in which two kinds ran at once. A kernel of a collective may do nothing but wait for
// other GPUs, so the time in which nothing else ran is kept apart: it is exposed.
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
      before_ = total();
      begin_ = end_ = begin;
    }
    any_ = true;
    end_ = std::max(end_, end);
  }
  // Whether there is nothing from the end of all so far to this moment.
  bool is_gap_until(std::uint64_t begin) const { return any_ && begin > end_; }
  bool any() const { return any_; }
  std::uint64_t end() const { return end_; }
  std::uint64_t total() const { return total_until(end_); }
  // As far as it lies before `ts`, which is in the last stretch or after it.
  std::uint64_t total_until(std::uint64_t ts) const {
    return before_ + std::min(ts, end_) - begin_;
  }

 private:
  bool any_ = false;
  std::uint64_t begin_ = 0, end_ = 0;  // of the last stretch
  std::uint64_t before_ = 0;           // time in those before it
};

enum class GpuOp : std::uint8_t { kernel, copy, set };
inline constexpr std::size_t GPU_OPS = 3;

// ns in which a GPU did something, and in which it did what.
struct WorkTime {
  std::uint64_t busy = 0;
  std::uint64_t kernels = 0;        // a kernel, or a collective's copy
  std::uint64_t own_kernels = 0;    // a kernel of no collective
  std::uint64_t communication = 0;  // a collective
  std::uint64_t exposed = 0;        // a collective, and nothing else

  std::uint64_t hidden() const { return communication - exposed; }
  std::uint64_t compute() const { return busy - exposed; }  // anything but collectives alone
};
inline constexpr std::uint64_t WorkTime::*WORK_TIMES[] = {
    &WorkTime::busy, &WorkTime::kernels, &WorkTime::own_kernels, &WorkTime::communication,
    &WorkTime::exposed};

inline void add_to(WorkTime& sum, const WorkTime& more) {
  for (auto time : WORK_TIMES) sum.*time += more.*time;
}
inline WorkTime operator-(const WorkTime& now, const WorkTime& before) {
  WorkTime since;
  for (auto time : WORK_TIMES) since.*time = now.*time - before.*time;
  return since;
}
// Each of them cut to a time in which no more can have been done.
inline WorkTime cut_to(WorkTime work, std::uint64_t time) {
  for (auto of : WORK_TIMES) work.*of = std::min(work.*of, time);
  return work;
}

// Something that a GPU did.
struct WorkKind {
  GpuOp op = GpuOp::kernel;
  bool communicates = false;  // for a collective
};

class Busy {
 public:
  struct OfOp {
    std::uint64_t count = 0, sum = 0;
    Union united;
  };

  // In the order of their beginnings.
  void add(const WorkKind& kind, std::uint64_t begin, std::uint64_t end) {
    count(kind, end - begin);
    of_[static_cast<std::size_t>(kind.op)].united.add(begin, end);
    if (kind.op != GpuOp::set) kernels_or_copies_.add(begin, end);
    all_.add(begin, end);
    if (kind.communicates) communication_.united.add(begin, end);
    if (!kind.communicates) others_.add(begin, end);
    if (kind.op == GpuOp::kernel || kind.communicates) kernels_.add(begin, end);
    if (kind.op == GpuOp::kernel && !kind.communicates) own_kernels_.add(begin, end);
  }
  // An operation that came too late for the union; only its duration is added.
  void count(const WorkKind& kind, std::uint64_t time) {
    count(of_[static_cast<std::size_t>(kind.op)], time);
    if (kind.communicates) count(communication_, time);
  }

  const OfOp& of(GpuOp op) const { return of_[static_cast<std::size_t>(op)]; }
  const OfOp& communication() const { return communication_; }
  const Union& all() const { return all_; }
  // Time in which a kernel and a copy ran at once.
  std::uint64_t overlap() const {
    return of(GpuOp::kernel).united.total() + of(GpuOp::copy).united.total() -
           kernels_or_copies_.total();
  }
  WorkTime times() const { return times_until(all_.end()); }
  // Until a moment at or after the beginning of the last that was added.
  WorkTime times_until(std::uint64_t ts) const {
    return {.busy = all_.total_until(ts),
            .kernels = kernels_.total_until(ts),
            .own_kernels = own_kernels_.total_until(ts),
            .communication = communication_.united.total_until(ts),
            .exposed = all_.total_until(ts) - others_.total_until(ts)};
  }
  // When something ends after `since`, if it ends before `until`.
  std::uint64_t next_end(std::uint64_t since, std::uint64_t until) const {
    for (const Union* one : {&all_, &kernels_, &own_kernels_, &communication_.united, &others_})
      if (one->end() > since) until = std::min(until, one->end());
    return until;
  }

 private:
  static void count(OfOp& of, std::uint64_t time) {
    of.count++;
    of.sum = saturating_sum(of.sum, time);
  }

  OfOp of_[GPU_OPS], communication_;
  Union kernels_or_copies_, all_;
  Union kernels_, own_kernels_, others_;  // others_: what is no collective
};

}  // namespace cudabpf::analyze
