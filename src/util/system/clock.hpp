// Clocks, and times as text.
#pragma once

#include <ctime>

#include <cstdint>
#include <string>

namespace cudabpf {

// CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME.
inline std::uint64_t now_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

// A CLOCK_REALTIME value in local time.
std::string file_timestamp(std::uint64_t realtime_ns);  // "20261121T101500"

}  // namespace cudabpf
