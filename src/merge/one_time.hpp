// Puts traces on one time, and says how far it may be wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "merge/ahead.hpp"
#include "trace/merged.hpp"
#include "util/system/clock.hpp"

namespace cudabpf::merge {

// No event of a real trace is later, and sums of two such times do not overflow.
inline constexpr std::uint64_t LATEST_TS = std::uint64_t{1} << 62;

// Two of a machine's clocks at one moment; 0: not known. The monotonic one is the machine's,
// without what a time namespace adds.
struct Reading {
  std::uint64_t monotonic = 0, realtime = 0;
  std::optional<ClockError> error;
};

// A trace in its machine's time.
struct TraceTimes {
  std::string boot_id;               // empty: not known
  Reading at_begin;                  // at ts 0
  std::optional<Reading> at_end;     // nothing: it was cut off
  std::uint64_t since = 0, end = 0;  // of its events, in its own time
};

struct Placed {
  std::size_t boot = 0;  // traces of one boot have the same number, from 0
  Alignment alignment = Alignment::same_boot;
  std::uint64_t offset_ns = 0;            // from the earliest ts 0 of all to its own
  std::optional<std::uint64_t> error_ns;  // of its place in the time of day; nothing: not known
  std::optional<std::uint64_t> bound_ns;  // of its distance to the first trace; nothing: not known
  std::string why_unknown;                // why these are not known; empty: they are
  std::string why_not;                    // why it cannot be placed at all; empty: it is placed
};

// One for each, in their order. `meetings`: of each trace, or none; a machine is placed by these
// where they place it better than its time of day.
std::vector<Placed> on_one_time(const std::vector<TraceTimes>& traces,
                                const std::vector<std::vector<Meeting>>& meetings = {});

}  // namespace cudabpf::merge
