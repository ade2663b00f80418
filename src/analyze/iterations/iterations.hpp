// What a thread does over and over: a token, a request, a step. Found in the launches alone.
//
// First, between waits: segments that begin and end with the same kernels and launch equally many
// (within 5 %) form a class; the class that launches most, if it has at least three segments, is
// the iterations. One lasts from its first launch to the first launch of the next, so smaller
// segments in between are part of it; a heavier one, or a pause, ends the series.
//
// If a program does not wait after each, they are looked for within the segment that launches most:
// the shortest sequence of kernels that its end repeats at least three times. The layers of a model
// repeat too, but what follows the last layer distinguishes them from iterations.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/iterations/thread_work.hpp"
#include "util/durations.hpp"

namespace cudabpf::analyze {

struct Iteration {
  std::uint64_t begin = 0, end = 0;  // to the next one's begin, unless there is a pause between
  std::uint64_t launches = 0;
  bool timed = false;  // its time is one of `times`
};

struct Iterations {
  enum class Found : std::uint8_t { none, between_waits, within_a_wait };
  Found found = Found::none;
  std::uint64_t count = 0;    // all of them
  std::uint64_t warm_up = 0;  // the first ones: they load code, or take half as long again
  std::vector<Iteration> each;

  // Those that lie in the part that is wanted:
  std::uint64_t in_part = 0, warm_up_in_part = 0;
  std::uint64_t pauses = 0;  // between two of them, longer than ten usual ones; not in `times`
  std::uint64_t launches = 0, fewest = 0, most = 0;  // per iteration; `launches`: the median
  std::uint64_t kernels = 0;                         // known to be run by each: the median
  Durations times;  // from the start of one to the start of the next, without warm-up
  std::vector<std::uint64_t> sorted_times;  // the same one by one, the shortest first
  Spent spent;                              // in `times`
  std::uint64_t time_at(double quantile) const { return quantile_of(sorted_times, quantile); }

  std::uint64_t begin = 0, warm = 0,
                end = 0;  // of the first, of the first after warm-up, of the last
  Spent at_begin, at_warm, at_end;
  struct {
    std::uint64_t begin = 0, end = 0, first_call = 0;  // the id of its first launch
  } typical;  // the one whose time is nearest to the median
};

Iterations find_iterations(const ThreadWork& thread, const Part& part = {});

}  // namespace cudabpf::analyze
