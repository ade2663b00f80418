// Calls that are only counted: sums instead of records.
#pragma once

#include <cstdint>

#include "cudabpf/cuda_api.hpp"

namespace cudabpf {

// One process's calls of one function, since the process was first seen.
struct Tally {
  std::uint32_t pid = 0;
  const Function* function = nullptr;
  std::uint64_t calls = 0;    // that have begun
  std::uint64_t time_ns = 0;  // of those that have ended, with the calls that they made themselves
  std::uint64_t failed = 0;
  std::uint64_t bytes = 0;      // to be copied, if an argument says how many
  std::uint64_t ended = 0;      // of the calls
  std::uint64_t failed_at = 0;  // the last that failed: when, CLOCK_MONOTONIC,
  int error = 0;                // and with what result
  bool last = false;            // the process is gone; the next one with its pid begins at 0
};

// They must balance: begun = ended + under way + dropped. Calls that longjmp left, or that were
// under way when their process ended, stay under way.
struct TallyAccounts {
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;
  std::uint64_t under_way = 0;  // as of the last tallies
  std::uint64_t dropped = 0;    // in no tally
};

}  // namespace cudabpf
