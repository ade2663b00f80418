#include "cli/request/moment.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <ctime>

#include "util/exit_codes.hpp"

using cudabpf::Moments;
using cudabpf::cli::parse_moment;
using Zone = Moments::Zone;

namespace {

constexpr std::uint64_t A_SECOND = 1'000'000'000;
// 2026-11-21 14:03:22.25 UTC
constexpr std::uint64_t TRACE_BEGAN = 1'795'269'802 * A_SECOND + A_SECOND / 4;

std::uint64_t parsed(const std::string& text, Zone zone = Zone::none) {
  auto moment = parse_moment(text, "--from", {TRACE_BEGAN, zone});
  INFO(text);
  REQUIRE(moment);
  return *moment;
}

std::string refused(const std::string& text, Zone zone, std::uint64_t began = TRACE_BEGAN) {
  auto moment = parse_moment(text, "--from", {began, zone});
  INFO(text);
  REQUIRE_FALSE(moment);
  CHECK(moment.error().exit_code == cudabpf::exit_code::USAGE);
  return moment.error().message;
}

void in_zone(const char* zone) {
  ::setenv("TZ", zone, 1);
  ::tzset();
}

}  // namespace

TEST_CASE("A moment is a time since the trace began") {
  CHECK(parsed("0") == 0);
  CHECK(parsed("1.5s") == 3 * A_SECOND / 2);
  CHECK(parsed("200ms", Zone::utc) == A_SECOND / 5);
}

TEST_CASE("A moment may be a time of day, of the day on which the trace began") {
  CHECK(parsed("14:03:23.25", Zone::utc) == A_SECOND);
  CHECK(parsed("14:04", Zone::utc) == 38 * A_SECOND - A_SECOND / 4);
  CHECK(parsed("14:03:22.5Z") == A_SECOND / 4);
  CHECK(parsed("15:03:22.5+01:00") == A_SECOND / 4);
  CHECK(parsed("09:03:22.5-0500") == A_SECOND / 4);
  CHECK(parsed("2026-11-22T14:03:22.250000001Z") == 24 * 3600 * A_SECOND + 1);
  CHECK(parsed("2026-11-21 14:03:22.25", Zone::utc) == 0);
}

TEST_CASE("A time of day without a zone is in that of the page") {
  in_zone("CET-1CEST,M3.5.0,M10.5.0/3");
  CHECK(parsed("15:03:23.25", Zone::local) == A_SECOND);
  CHECK(parsed("14:03:23.25", Zone::utc) == A_SECOND);
  CHECK(parsed("14:03:23.25Z", Zone::local) == A_SECOND);
  SECTION("which has an hour twice, and one not at all, where clocks are changed") {
    CHECK(refused("2027-10-31 02:30", Zone::local).find("or there are two") != std::string::npos);
    CHECK(refused("2027-03-28 02:30", Zone::local).find("no such time") != std::string::npos);
    CHECK(parsed("2027-10-31 02:30+01:00", Zone::local) == parsed("2027-10-31 01:30", Zone::utc));
  }
  in_zone("UTC");
}

TEST_CASE("What is no moment of the trace is refused, with the reason") {
  CHECK(refused("14:03:23", Zone::none).find("says no time zone") != std::string::npos);
  CHECK(refused("14:03:22", Zone::utc).find("is not in the trace") != std::string::npos);
  CHECK(refused("14:03:23Z", Zone::utc, 0).find("does not say when") != std::string::npos);
  for (const char* text :
       {"9999-01-01T00:00Z", "1969-12-31T23:59:59Z", "1677-01-01T00:00Z", "0000-01-01T00:00Z"})
    CHECK(refused(text, Zone::utc).find("is not in the trace") != std::string::npos);
  CHECK(refused("2027-02-30 10:00", Zone::utc).find("no such time") != std::string::npos);
  for (const char* text : {"24:00", "14:60", "14:", ":", "14:03:22,5", "1:2:3:4", "14:03 PM"})
    CHECK(refused(text, Zone::utc).find("not a time") != std::string::npos);
  CHECK(refused(std::string(100'000, '1') + ":00", Zone::utc).find("not a time") !=
        std::string::npos);
}
