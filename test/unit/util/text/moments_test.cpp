#include "util/text/moments.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <ctime>

#include "support/units.hpp"

using cudabpf::Moments;
using Zone = Moments::Zone;

namespace {

// 2026-11-21 23:59:58.5 UTC
constexpr std::uint64_t BEGAN = 1'795'305'598 * SECOND + SECOND / 2;

void live_in(const char* zone) {
  ::setenv("TZ", zone, 1);
  ::tzset();
}

}  // namespace

TEST_CASE("Moments are written since the beginning, unless a zone is wanted") {
  CHECK(Moments().at(10'652'314'999) == "10.652314 s");
  CHECK(Moments().beginning().empty());
  Moments relative(BEGAN, Zone::none);
  CHECK(relative.at(0) == "0.000000 s");
  CHECK(relative.beginning() == "2026-11-21 23:59:58 UTC");
  CHECK(relative.since_midnight() == 0);
  CHECK_FALSE(relative.are_of_day());
  CHECK_FALSE(Moments(0, Zone::utc).are_of_day());  // the beginning is not known
  CHECK(Moments(0, Zone::utc).at(SECOND) == "1.000000 s");
  CHECK(Moments(~std::uint64_t{0}, Zone::utc).began() == 0);  // of no clock
}

TEST_CASE("Times of day have a date on other days than the first") {
  Moments moments(BEGAN, Zone::utc);
  CHECK(moments.at(0) == "23:59:58.500000");
  CHECK(moments.at(SECOND) == "23:59:59.500000");
  CHECK(moments.at(3 * SECOND / 2) == "2026-11-22 00:00:00.000000");
  CHECK(moments.since_midnight() == (24 * 3600 - 2) * SECOND + SECOND / 2);
}

TEST_CASE("Local times are of the reader's zone, as it was then") {
  live_in("CET-1CEST,M3.5.0,M10.5.0/3");
  Moments winter(BEGAN, Zone::local);
  CHECK(winter.beginning() == "2026-11-22 00:59:58 CET");
  CHECK(winter.at(0) == "00:59:58.500000");
  Moments summer(BEGAN - 150 * 24 * 3600 * SECOND, Zone::local);
  CHECK(summer.beginning() == "2026-06-25 01:59:58 CEST");
  CHECK(Moments(BEGAN, Zone::utc).beginning() == "2026-11-21 23:59:58 UTC");
  CHECK(Moments(BEGAN, Zone::none).beginning() == "2026-11-21 23:59:58 UTC");
  live_in("UTC");
}

TEST_CASE("ISO times are in UTC, to the nanosecond") {
  CHECK(cudabpf::iso_time(BEGAN + 7) == "2026-11-21T23:59:58.500000007Z");
}
