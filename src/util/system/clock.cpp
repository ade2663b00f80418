#include "util/system/clock.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace cudabpf {

namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

std::tm local_time(uint64_t realtime_ns) {
  auto seconds = static_cast<time_t>(realtime_ns / kNsPerSecond);
  std::tm parts{};
  tzset();  // localtime_r need not look at TZ
  localtime_r(&seconds, &parts);
  return parts;
}

}  // namespace

std::string iso8601(uint64_t realtime_ns) {
  std::tm t = local_time(realtime_ns);
  long offset_minutes = std::labs(t.tm_gmtoff) / 60;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}{}{:02}:{:02}", t.tm_year + 1900,
                     t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec,
                     realtime_ns % kNsPerSecond, t.tm_gmtoff < 0 ? '-' : '+', offset_minutes / 60,
                     offset_minutes % 60);
}

std::string file_timestamp(uint64_t realtime_ns) {
  std::tm t = local_time(realtime_ns);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday,
                     t.tm_hour, t.tm_min, t.tm_sec);
}

}  // namespace cudabpf
