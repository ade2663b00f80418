#include "util/text/moments.hpp"

#include <fmt/format.h>

#include <ctime>

namespace cudabpf {

namespace {

constexpr std::uint64_t SECOND = 1'000'000'000;

std::tm broken_down(std::uint64_t ns, Moments::Zone zone) {
  auto seconds = static_cast<std::time_t>(ns / SECOND);
  std::tm broken{};
  if (zone == Moments::Zone::local)
    ::localtime_r(&seconds, &broken);
  else
    ::gmtime_r(&seconds, &broken);
  return broken;
}

std::string date_of(const std::tm& day) {
  return fmt::format("{:04}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

std::string time_of(const std::tm& day) {
  return fmt::format("{:02}:{:02}:{:02}", day.tm_hour, day.tm_min, day.tm_sec);
}

}  // namespace

std::string Moments::at(std::uint64_t ns) const {
  std::uint64_t microseconds = ns / 1000 % 1'000'000;
  if (!are_of_day()) return fmt::format("{}.{:06} s", ns / SECOND, microseconds);
  std::uint64_t then = began_ + ns;
  std::string date = date_of(broken_down(then, zone_));
  bool is_first_day = date == date_of(broken_down(began_, zone_));
  return fmt::format("{}{}{}.{:06}", is_first_day ? "" : date, is_first_day ? "" : " ",
                     time_of(broken_down(then, zone_)), then / 1000 % 1'000'000);
}

std::string Moments::beginning() const {
  if (!began_) return {};
  std::tm day = broken_down(began_, zone_);
  const char* zone = zone_ == Zone::local && day.tm_zone ? day.tm_zone : "UTC";
  return fmt::format("{} {} {}", date_of(day), time_of(day), zone);
}

std::uint64_t Moments::since_midnight() const {
  if (!are_of_day()) return 0;
  std::tm day = broken_down(began_, zone_);
  int seconds = (day.tm_hour * 60 + day.tm_min) * 60 + day.tm_sec;
  return static_cast<std::uint64_t>(seconds) * SECOND + began_ % SECOND;
}

std::string iso_time(std::uint64_t ns) {
  std::tm day = broken_down(ns, Moments::Zone::utc);
  return fmt::format("{}T{}.{:09}Z", date_of(day), time_of(day), ns % SECOND);
}

}  // namespace cudabpf
