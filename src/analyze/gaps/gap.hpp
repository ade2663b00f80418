// A time when a process gave the GPU nothing to do, and the calls before and after it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/read/part.hpp"
#include "util/largest.hpp"

namespace cudabpf::analyze {

struct Gap {
  std::uint32_t pid = 0, tid = 0;    // the thread that began it
  std::uint64_t begin = 0, end = 0;  // ns
  std::uint64_t after = 0, until = 0;
  Name after_name, until_name;
  std::uint64_t in_calls = 0;  // ns of it that this thread spent in CUDA calls
  std::uint64_t untimed = 0;   // this thread's calls in it whose duration is not known
  Name longest_call;           // of those whose duration is known
  std::uint64_t longest = 0;

  Gap() = default;
  explicit Gap(const Line& after);  // begins when `after` returns
  std::uint64_t time() const { return end - begin; }
  // Its thread makes a call during the gap; returns how much of the gap, in the part, it takes.
  std::uint64_t spend(const Line& call, const Part& part);
  // What is left is the gap in the part. False: nothing is.
  bool close(const Line& until, const Part& part);
};

// Equally long gaps stand in the order of time, so that the first few do not depend on how many are
// kept.
struct LongerGap {
  bool operator()(const Gap& a, const Gap& b) const {
    if (a.time() != b.time()) return a.time() > b.time();
    return a.begin != b.begin ? a.begin < b.begin : a.pid < b.pid;
  }
};
using LongestGaps = Largest<Gap, LongerGap>;

inline constexpr std::size_t ALL_GAPS = ~std::size_t{0};

template <typename AnyGap>
std::span<const AnyGap> first_of(const std::vector<AnyGap>& gaps, std::size_t at_most) {
  return {gaps.data(), std::min(at_most, gaps.size())};
}

// "99.7 %": the share of a time spent outside CUDA calls; only an upper bound, or unknown, if there
// were calls whose duration is not known.
std::string outside_calls(std::uint64_t time, std::uint64_t in_calls, std::uint64_t untimed);
inline std::string outside_calls(const Gap& gap) {
  return outside_calls(gap.time(), gap.in_calls, gap.untimed);
}

}  // namespace cudabpf::analyze
