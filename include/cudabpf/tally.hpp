// Calls that are only counted: sums instead of records.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cudabpf/call_class.hpp"

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

// How long calls took: how many took at most TIME_LIMITS_NS[0], how many of the others at most the
// next limit, …, and how many took longer than all of them.
inline constexpr std::size_t TIME_LIMITS = 13;
constexpr std::array<std::uint64_t, TIME_LIMITS> time_limits_ns() {
  std::array<std::uint64_t, TIME_LIMITS> limits{};
  std::uint64_t next = 1000;
  for (std::uint64_t& limit : limits) {
    limit = next;
    next *= 4;
  }
  return limits;
}
inline constexpr auto TIME_LIMITS_NS = time_limits_ns();
struct Times {
  std::uint64_t time_ns = 0;
  std::array<std::uint64_t, TIME_LIMITS + 1> calls{};

  void add(std::uint64_t ns) {
    std::size_t at = 0;
    while (at < TIME_LIMITS && ns > TIME_LIMITS_NS[at]) at++;
    calls[at]++;
    time_ns += ns;
  }
};

// One process's calls of one class that have ended, since the process was first seen.
struct ClassTally {
  std::uint32_t pid = 0;
  CallClass of = CallClass::other;
  Times times;
  bool last = false;  // the process is gone
};

// One process's calls that have failed with one result.
struct FailureTally {
  std::uint32_t pid = 0;
  int result = 0;
  std::uint64_t calls = 0;
  bool last = false;  // the process is gone
};

struct Tallies {
  std::vector<Tally> functions = {};
  std::vector<ClassTally> classes = {};  // if they are wanted
  std::vector<FailureTally> failures = {};
  bool empty() const { return functions.empty() && classes.empty() && failures.empty(); }
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
