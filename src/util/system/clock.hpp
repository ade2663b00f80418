// Clocks, and times as text.
#pragma once

#include <ctime>

#include <cstdint>
#include <optional>
#include <string>

namespace cudabpf {

// CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME.
inline std::uint64_t now_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

// Three clocks at one moment, in ns.
struct ClockReadings {
  std::uint64_t monotonic = 0, realtime = 0, boottime = 0;
};
ClockReadings clocks_now();

// How far CLOCK_REALTIME may be from the time of day, as adjtimex(2) says.
struct ClockError {
  std::int64_t offset_ns = 0;  // still to be corrected
  std::uint64_t max_error_us = 0, estimated_error_us = 0;
  std::uint32_t status = 0;  // STA_ flags; 0x40: it is not synchronised
  bool operator==(const ClockError&) const = default;
};
std::optional<ClockError> clock_error();  // nothing: the kernel does not say

// What this process's time namespace adds to the machine's clocks.
struct TimeOffsets {
  std::int64_t monotonic_ns = 0, boottime_ns = 0;
  bool operator==(const TimeOffsets&) const = default;
};
TimeOffsets time_offsets(const std::string& path = "/proc/self/timens_offsets");

// A CLOCK_REALTIME value in local time.
std::string file_timestamp(std::uint64_t realtime_ns);  // "20261121T101500"

}  // namespace cudabpf
