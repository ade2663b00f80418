// What GPUs did, as a trace has it with --gpu: a row for each queue of a process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "analyze/derived/issuing_calls.hpp"
#include "analyze/timeline/timeline_bars.hpp"

namespace cudabpf::analyze {

struct QueueBars {
  std::uint64_t operations = 0;
  std::uint64_t time = 0;  // in which it did something
  BarRow bars;             // by when the GPU did it

  // Operations of a queue can overlap, and what ran at once counts once: calls each(bar, where,
  // time) with the end of each bar, in which no earlier one ran, and how long it was busy there.
  // For a bar of several operations it is known how long at least one of them ran, but not when.
  template <typename Each>
  void each_time(Each&& each) const {
    std::uint64_t until = 0;
    for (const Bar& bar : bars) {
      TimeSpan where{std::clamp(until, bar.begin, bar.end), bar.end};
      each(bar, where, std::min(bar.covered(), where.time()));
      until = std::max(until, bar.end);
    }
  }
};

// A kernel, a copy or a fill, or all that a launch of a graph did.
struct QueuedOperation {
  std::size_t queue = 0;  // which of the timeline's
  TimeSpan span;
  Line line;                          // without its text
  std::optional<IssuingCall> issuer;  // if known
  bool is_first = false;              // of those with this call
};

}  // namespace cudabpf::analyze
