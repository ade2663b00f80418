#include "util/system/tick_clock.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <ctime>

#include "util/system/clock.hpp"

using namespace cudabpf;

namespace {

// A counter of 2.5 ticks a nanosecond, looked at each 100 us.
constexpr std::uint64_t STEP_NS = 100'000, STEP_TICKS = 250'000;
constexpr std::uint64_t FIRST_TICKS = 7'000'000'000, FIRST_NS = 40'000'000;

TickClock::Moment step(std::uint64_t number) {
  return {FIRST_TICKS + number * STEP_TICKS, FIRST_NS + number * STEP_NS};
}

TickClock clock_after(std::uint64_t steps) {
  TickClock clock;
  for (std::uint64_t i = 0; i <= steps; i++) clock.add(step(i));
  return clock;
}

bool differ_by_at_most(std::uint64_t most, std::uint64_t one, std::uint64_t other) {
  return (one > other ? one - other : other - one) <= most;
}

}  // namespace

TEST_CASE("Ticks are converted by the two moments between which they lie") {
  TickClock clock = clock_after(10);
  CHECK(clock.ns(FIRST_TICKS) == FIRST_NS);
  CHECK(clock.ns(step(10).ticks) == step(10).ns);
  CHECK(differ_by_at_most(1, clock.ns(step(9).ticks + 2'500), step(9).ns + 1'000));
  CHECK(differ_by_at_most(1, clock.ns(step(3).ticks + 2'500), step(3).ns + 1'000));
  // Beyond both ends, as if the rate had always been the same.
  CHECK(differ_by_at_most(1, clock.ns(step(10).ticks + 2'500), step(10).ns + 1'000));
  CHECK(differ_by_at_most(1, clock.ns(FIRST_TICKS - 2'500), FIRST_NS - 1'000));
}

TEST_CASE("The counter's rate may change") {
  TickClock clock;
  clock.add({1000, 1000});
  clock.add({2000, 2000});
  clock.add({3000, 4000});
  CHECK(clock.ns(1500) == 1500);
  CHECK(clock.ns(2500) == 3000);
  CHECK(clock.ns(3500) == 5000);
}

TEST_CASE("Time never goes back from one tick to the next") {
  TickClock clock;
  // Moments that are a few nanoseconds too early or too late.
  for (std::uint64_t i = 0; i < 20; i++)
    clock.add({1000 + i * 333, 1000 + i * 100 + i * i * 7 % 13});
  std::uint64_t last = 0;
  for (std::uint64_t ticks = 900; ticks < 8'000; ticks++) {
    std::uint64_t ns = clock.ns(ticks);
    REQUIRE(ns >= last);
    last = ns;
  }
}

TEST_CASE("A clock that runs for long keeps few moments, and what was long ago stays right") {
  constexpr std::uint64_t STEPS = 200'000;
  TickClock clock = clock_after(STEPS);
  CHECK(clock.moments() <= 256);
  for (std::uint64_t at : {std::uint64_t{1}, STEPS / 3, STEPS / 2, STEPS - 100, STEPS - 1})
    CHECK(differ_by_at_most(2, clock.ns(step(at).ticks + 500), step(at).ns + 200));
}

TEST_CASE("A counter that begins anew is followed") {
  TickClock clock = clock_after(10);
  clock.add({5'000, step(20).ns});
  CHECK(differ_by_at_most(1, clock.ns(7'500), step(20).ns + 1'000));  // by the rate of before
  clock.add({5'000 + STEP_TICKS, step(21).ns});
  CHECK(differ_by_at_most(1, clock.ns(7'500), step(20).ns + 1'000));
}

TEST_CASE("Made-up ticks, and moments that say nothing, do no harm") {
  TickClock clock;
  CHECK(clock.ns(5) == 0);
  clock.add({1000, 1000});
  CHECK(clock.ns(UINT64_MAX) >= 1000);
  clock.add({1000, 2000});
  clock.add({2000, 1000});
  CHECK(clock.moments() == 1);
  clock.add({1001, 1'000'000});
  CHECK(clock.ns(UINT64_MAX) >= 1'000'000);
  CHECK(clock.ns(0) <= 1000);
}

TEST_CASE("The processor's own counter gives the time") {
  if (!TickClock::is_reliable()) SKIP("the kernel does not offer the time stamp counter");
  TickClock clock;
  clock.add(TickClock::now());
  std::uint64_t before = now_ns(CLOCK_MONOTONIC);
  while (now_ns(CLOCK_MONOTONIC) < before + 2'000'000) {
  }
  TickClock::Moment now = TickClock::now();
  timespec pause{0, 1'000'000};
  nanosleep(&pause, nullptr);
  clock.add(TickClock::now());
  // The kernel corrects its clock's rate by at most 500 ppm: 1 us in these 2 ms.
  CHECK(differ_by_at_most(2'000, clock.ns(now.ticks), now.ns));
}
