#include "util/system/clock.hpp"

#include <fmt/format.h>

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

}  // namespace cudabpf
