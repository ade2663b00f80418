#include "cli/request/moment.hpp"

#include <fmt/format.h>

#include <ctime>
#include <optional>
#include <regex>

#include "cli/request/quantities.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

constexpr std::int64_t SECOND = 1'000'000'000;

struct TimeOfDay {
  std::tm broken{};
  bool has_date = false;
  std::int64_t ns = 0;                      // of the second
  std::optional<std::int64_t> east_of_utc;  // s, if it says its zone
};

int number(const std::ssub_match& text) { return std::stoi(text.str()); }

std::optional<TimeOfDay> time_of_day_in(const std::string& text) {
  constexpr std::size_t LONGEST = 64;
  static const std::regex FORM(
      R"((?:(\d{4})-(\d\d)-(\d\d)[T ])?(\d\d?):(\d\d)(?::(\d\d)(?:\.(\d{1,9})\d*)?)?(Z|UTC|([+-])(\d\d):?(\d\d))?)");
  std::smatch found;
  if (text.size() > LONGEST || !std::regex_match(text, found, FORM)) return std::nullopt;
  TimeOfDay time;
  time.has_date = found[1].matched;
  if (time.has_date) {
    time.broken.tm_year = number(found[1]) - 1900;
    time.broken.tm_mon = number(found[2]) - 1;
    time.broken.tm_mday = number(found[3]);
  }
  time.broken.tm_hour = number(found[4]);
  time.broken.tm_min = number(found[5]);
  if (found[6].matched) time.broken.tm_sec = number(found[6]);
  if (found[7].matched) {
    std::string digits = found[7].str();
    digits.resize(9, '0');
    time.ns = std::stoll(digits);
  }
  if (time.broken.tm_hour > 23 || time.broken.tm_min > 59 || time.broken.tm_sec > 60)
    return std::nullopt;
  if (!found[8].matched) return time;
  time.east_of_utc = 0;
  if (found[9].matched)
    time.east_of_utc =
        (number(found[10]) * 60 + number(found[11])) * 60 * (found[9] == "-" ? -1 : 1);
  return time;
}

// The day on which the trace began, where the time is shown.
void add_date(TimeOfDay& time, const Moments& moments) {
  auto began = static_cast<std::time_t>(moments.began() / SECOND);
  std::tm day{};
  if (time.east_of_utc) {
    began += *time.east_of_utc;
    ::gmtime_r(&began, &day);
  } else if (moments.zone() == Moments::Zone::local) {
    ::localtime_r(&began, &day);
  } else {
    ::gmtime_r(&began, &day);
  }
  time.broken.tm_year = day.tm_year;
  time.broken.tm_mon = day.tm_mon;
  time.broken.tm_mday = day.tm_mday;
}

bool same(const std::tm& a, const std::tm& b) {
  return a.tm_year == b.tm_year && a.tm_mon == b.tm_mon && a.tm_mday == b.tm_mday &&
         a.tm_hour == b.tm_hour && a.tm_min == b.tm_min;
}

// Seconds since 1970. Nothing: there is no such time, or there are two, as where clocks are put
// back.
std::optional<std::int64_t> seconds_of(const TimeOfDay& time, Moments::Zone zone) {
  if (time.east_of_utc || zone == Moments::Zone::utc) {
    std::tm there = time.broken;
    std::int64_t seconds = ::timegm(&there);
    if (!same(there, time.broken)) return std::nullopt;  // February 30
    return seconds - time.east_of_utc.value_or(0);
  }
  std::optional<std::int64_t> found;
  for (int summer : {0, 1}) {
    std::tm there = time.broken;
    there.tm_isdst = summer;
    std::int64_t seconds = ::mktime(&there);
    if (!same(there, time.broken)) continue;
    if (found && *found != seconds) return std::nullopt;
    found = seconds;
  }
  return found;
}

}  // namespace

Result<std::uint64_t> parse_moment(const std::string& text, const std::string& flag,
                                   const Moments& moments) {
  if (text == "0") return std::uint64_t{0};
  if (text.find(':') == std::string::npos) return parse_duration(text, flag);
  auto wrong = [&](const std::string& why, const std::string& instead) {
    return Error{fmt::format("{} {}: {}", flag, text, why), instead, exit_code::USAGE};
  };
  auto time = time_of_day_in(text);
  if (!time)
    return wrong("not a time", "give it as 14:03:22.5, 2026-11-21T14:03:22Z, 1.5s or 200ms");
  if (!time->east_of_utc && moments.zone() == Moments::Zone::none)
    return wrong("says no time zone", "add Z for UTC, or give --time utc or --time local");
  if (!moments.began())
    return wrong("the trace does not say when it began", "give a time since then: 1.5s, 200ms");
  if (!time->has_date) add_date(*time, moments);
  auto seconds = seconds_of(*time, moments.zone());
  if (!seconds)
    return wrong("there is no such time, or there are two", "say it in UTC: 2026-11-21T14:03:22Z");
  auto began = static_cast<std::int64_t>(moments.began());
  constexpr std::int64_t LATEST = 9'000'000'000;  // s: beyond any trace, and its ns fit
  if (*seconds < 0 || *seconds > LATEST || *seconds * SECOND + time->ns < began)
    return wrong("is not in the trace", "it began at " + moments.beginning());
  return static_cast<std::uint64_t>(*seconds * SECOND + time->ns - began);
}

}  // namespace cudabpf::cli
