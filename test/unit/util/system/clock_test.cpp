#include "util/system/clock.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <ctime>
#include <string>

using namespace cudabpf;

namespace {

// Sets the time zone for one test, and restores it afterwards.
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

constexpr std::uint64_t k2026 = 1'795'255'200'000'000'123;  // 2026-11-21T10:00:00.000000123Z

}  // namespace

TEST_CASE("Times in names of files are local") {
  // Zones in POSIX form, which need no zone files; their sign is the other way round.
  SECTION("UTC") {
    TimeZone zone("UTC0");
    CHECK(file_timestamp(k2026) == "20261121T100000");
  }
  SECTION("east of it") {
    TimeZone zone("IST-5:30");
    CHECK(file_timestamp(k2026) == "20261121T153000");
  }
  SECTION("west of it, and on the day before") {
    TimeZone zone("NST11:30");
    CHECK(file_timestamp(k2026) == "20261120T223000");
  }
}

TEST_CASE("Three clocks are read together") {
  std::uint64_t before = now_ns(CLOCK_MONOTONIC);
  ClockReadings now = clocks_now();
  std::uint64_t after = now_ns(CLOCK_MONOTONIC);
  CHECK(now.monotonic >= before);
  CHECK(now.monotonic <= after);
  CHECK(now.boottime >= now.monotonic);  // which stands still while the machine sleeps
  CHECK(now.realtime > 1'700'000'000'000'000'000);
}

TEST_CASE("Clocks count nanoseconds") {
  std::uint64_t before = now_ns(CLOCK_MONOTONIC);
  std::uint64_t after = now_ns(CLOCK_MONOTONIC);
  CHECK(after >= before);
  CHECK(after - before < 60'000'000'000);

  auto seconds = static_cast<std::uint64_t>(std::time(nullptr));
  std::uint64_t realtime = now_ns(CLOCK_REALTIME) / 1'000'000'000;
  CHECK(realtime >= seconds);
  CHECK(realtime <= seconds + 60);
  // Boot time goes on while the machine sleeps, so it is never behind.
  CHECK(now_ns(CLOCK_BOOTTIME) >= before);
}
