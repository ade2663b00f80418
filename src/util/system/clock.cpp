#include "util/system/clock.hpp"

#include <fmt/format.h>
#include <sys/timex.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace cudabpf {

namespace {

constexpr std::uint64_t NS_PER_SECOND = 1'000'000'000;

std::tm local_time(std::uint64_t realtime_ns) {
  auto seconds = static_cast<time_t>(realtime_ns / NS_PER_SECOND);
  std::tm parts{};
  tzset();  // localtime_r is not required to read TZ
  localtime_r(&seconds, &parts);
  return parts;
}

}  // namespace

std::string file_timestamp(std::uint64_t realtime_ns) {
  std::tm t = local_time(realtime_ns);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday,
                     t.tm_hour, t.tm_min, t.tm_sec);
}

// The thread may have lost its CPU between the readings: of several, those count that took least.
ClockReadings clocks_now() {
  constexpr int TIMES = 5;
  ClockReadings best;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < TIMES; i++) {
    ClockReadings now{now_ns(CLOCK_MONOTONIC), now_ns(CLOCK_REALTIME), now_ns(CLOCK_BOOTTIME)};
    std::uint64_t took = now_ns(CLOCK_MONOTONIC) - now.monotonic;
    if (took >= least) continue;
    least = took;
    best = now;
  }
  return best;
}

std::optional<ClockError> clock_error() {
  timex state{};  // no modes: nothing is changed
  if (adjtimex(&state) < 0) return std::nullopt;
  std::int64_t unit = state.status & STA_NANO ? 1 : 1000;
  auto whole = [](long number) { return static_cast<std::uint64_t>(std::max(number, 0L)); };
  return ClockError{state.offset * unit, whole(state.maxerror), whole(state.esterror),
                    static_cast<std::uint32_t>(state.status)};
}

TimeOffsets time_offsets(const std::string& path) {
  TimeOffsets offsets;
  std::ifstream file(path);  // "monotonic  86400  0": seconds and nanoseconds
  std::string clock;
  for (std::int64_t seconds = 0, ns = 0; file >> clock >> seconds >> ns;) {
    std::int64_t offset = seconds * 1'000'000'000 + ns;
    if (clock == "monotonic") offsets.monotonic_ns = offset;
    if (clock == "boottime") offsets.boottime_ns = offset;
  }
  return offsets;
}

}  // namespace cudabpf
