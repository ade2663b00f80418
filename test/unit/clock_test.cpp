#include "util/system/clock.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <ctime>
#include <string>

using namespace cudabpf;

namespace {

// The zone for one test, and the old one afterwards.
class TimeZone {
 public:
  explicit TimeZone(const char* zone) {
    if (const char* old = getenv("TZ")) old_ = old;
    setenv("TZ", zone, 1);
  }
  ~TimeZone() {
    if (old_.empty()) {
      unsetenv("TZ");
    } else {
      setenv("TZ", old_.c_str(), 1);
    }
    tzset();
  }
  TimeZone(const TimeZone&) = delete;
  TimeZone& operator=(const TimeZone&) = delete;

 private:
  std::string old_;
};

constexpr uint64_t k2026 = 1'795'255'200'000'000'123;  // 2026-11-21T10:00:00.000000123Z

}  // namespace

TEST_CASE("Times are written in local time with the offset from UTC") {
  // Zones in POSIX form, which need no zone files; their sign is the other way round.
  SECTION("UTC") {
    TimeZone zone("UTC0");
    CHECK(iso8601(k2026) == "2026-11-21T10:00:00.000000123+00:00");
    CHECK(file_timestamp(k2026) == "20261121T100000");
    CHECK(iso8601(0) == "1970-01-01T00:00:00.000000000+00:00");
  }
  SECTION("east of it") {
    TimeZone zone("IST-5:30");
    CHECK(iso8601(k2026) == "2026-11-21T15:30:00.000000123+05:30");
    CHECK(file_timestamp(k2026) == "20261121T153000");
  }
  SECTION("west of it, and on the day before") {
    TimeZone zone("NST11:30");
    CHECK(iso8601(k2026) == "2026-11-20T22:30:00.000000123-11:30");
    CHECK(file_timestamp(k2026) == "20261120T223000");
  }
}

TEST_CASE("Clocks count nanoseconds") {
  uint64_t before = now_ns(CLOCK_MONOTONIC);
  uint64_t after = now_ns(CLOCK_MONOTONIC);
  CHECK(after >= before);
  CHECK(after - before < 60'000'000'000);

  auto seconds = static_cast<uint64_t>(std::time(nullptr));
  uint64_t realtime = now_ns(CLOCK_REALTIME) / 1'000'000'000;
  CHECK(realtime >= seconds);
  CHECK(realtime <= seconds + 60);
  // Boot time goes on while the machine sleeps, so it is never behind.
  CHECK(now_ns(CLOCK_BOOTTIME) >= before);
}
