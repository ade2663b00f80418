// Clocks, and times as text.
#pragma once

#include <ctime>

#include <cstdint>
#include <string>

namespace cudabpf {

// CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME.
inline uint64_t now_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// A CLOCK_REALTIME value in local time.
std::string iso8601(uint64_t realtime_ns);         // "2026-11-21T10:15:00.000000123+01:00"
std::string file_timestamp(uint64_t realtime_ns);  // "20261121T101500"

}  // namespace cudabpf
