#include "merge/one_time.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace cudabpf;
using namespace cudabpf::merge;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::uint64_t SECOND = 1'000'000'000, MS = 1'000'000;
constexpr std::uint64_t DAY = 1'795'255'200'000'000'000;  // a time of day, in 2026

ClockError error_of(std::uint64_t most_us, std::int64_t offset_ns = 0) {
  return {offset_ns, most_us, most_us / 10, 0};
}

// A trace of ten seconds whose machine was up for `up`, and began at that time of day.
TraceTimes trace(const std::string& boot, std::uint64_t up, std::uint64_t day,
                 std::optional<ClockError> error = error_of(1000)) {
  TraceTimes times;
  times.boot_id = boot;
  times.at_begin = {up, day, error};
  times.at_end = Reading{up + 10 * SECOND, day + 10 * SECOND, error};
  times.end = 10 * SECOND;
  return times;
}

}  // namespace

TEST_CASE("Traces of one boot are on one clock, whatever the time of day says") {
  auto placed = on_one_time({trace("a", 50 * SECOND, DAY), trace("a", 47 * SECOND, DAY + 99)});
  CHECK(placed[0].offset_ns == 3 * SECOND);
  CHECK(placed[1].offset_ns == 0);
  for (const Placed& one : placed) {
    CHECK(one.boot == 0);
    CHECK(one.alignment == Alignment::same_boot);
    CHECK(one.bound_ns == 0);
    CHECK(one.why_not.empty());
  }
  // Neither needs a time of day, or says how far its clock may be wrong.
  placed = on_one_time({trace("a", 7, 0, {}), trace("a", 5, 0, {})});
  CHECK(placed[0].offset_ns == 2);
  CHECK(placed[0].bound_ns == 0);
  CHECK(placed[0].why_not.empty());
}

TEST_CASE("Traces of different boots are placed by the time of day") {
  auto placed = on_one_time({trace("a", 50 * SECOND, DAY), trace("b", 9, DAY + 2 * SECOND)});
  CHECK(placed[0].offset_ns == 0);
  CHECK(placed[1].offset_ns == 2 * SECOND);
  CHECK(placed[0].alignment == Alignment::same_boot);
  CHECK(placed[1].alignment == Alignment::time_of_day);
  CHECK(placed[1].boot == 1);
  // Each clock may be wrong by 1 ms when it is read; in the middle of the ten seconds between, also
  // by what it may run wrong in five of them, at 500 ppm.
  CHECK(placed[0].error_ns == MS + 5 * SECOND / 2000 + 1);
  CHECK(placed[0].bound_ns == 0);
  CHECK(placed[1].bound_ns == 2 * (MS + 5 * SECOND / 2000 + 1));
}

TEST_CASE("What the kernel has still to add to the clock is added") {
  auto placed = on_one_time(
      {trace("a", 5, DAY, error_of(1000, -3000)), trace("b", 5, DAY, error_of(1000, 2000))});
  CHECK(placed[0].offset_ns == 0);
  CHECK(placed[1].offset_ns == 5000);
  CHECK(placed[0].error_ns == MS + 3000 + 5 * SECOND / 2000 + 1);
}

TEST_CASE("A clock that was set, or drifted, while a trace was recorded may be wrong by that") {
  TraceTimes set = trace("a", 5, DAY);
  set.at_end->realtime += 40 * MS;
  auto placed = on_one_time({set, trace("b", 5, DAY)});
  // From the beginning the error only grows: what the end says is worse than that.
  CHECK(placed[0].error_ns == MS + 10 * SECOND / 2000 + 1);
  set.at_end->realtime -= 38 * MS;
  placed = on_one_time({set, trace("b", 5, DAY)});
  CHECK(placed[0].error_ns > MS + 5 * SECOND / 2000 + 1);
  CHECK(placed[0].error_ns < MS + 10 * SECOND / 2000);
}

TEST_CASE("A trace that was cut off is less certain the longer it is") {
  TraceTimes cut = trace("a", 5, DAY);
  cut.at_end = {};
  auto placed = on_one_time({cut, trace("b", 5, DAY)});
  CHECK(placed[0].error_ns > MS + 10 * SECOND / 2000 - 1);
  CHECK(placed[0].error_ns < MS + 10 * SECOND / 2000 + 2);
}

TEST_CASE("The best reading of a boot places all its traces") {
  auto bad = error_of(500'000);
  auto placed = on_one_time({trace("a", 5 * SECOND, DAY + 300 * MS, bad),
                             trace("a", 6 * SECOND, DAY + SECOND), trace("b", 5, DAY)});
  CHECK(placed[1].offset_ns == SECOND);
  CHECK(placed[0].offset_ns == 0);  // by the boot's one clock, a second before
  CHECK(placed[2].offset_ns == 0);
  CHECK(placed[0].error_ns == placed[1].error_ns);
  CHECK(placed[0].error_ns < 10 * MS);
}

TEST_CASE("Nothing is known of a clock that is not synchronised") {
  ClockError alone = error_of(16'000'000);
  alone.status = 0x40;
  auto placed = on_one_time({trace("a", 5, DAY), trace("b", 5, DAY + 7, alone)});
  CHECK(placed[1].offset_ns == 7);  // as it says
  CHECK_FALSE(placed[1].error_ns);
  CHECK_FALSE(placed[1].bound_ns);
  CHECK_THAT(placed[1].why_unknown, ContainsSubstring("not synchronised"));
  CHECK(placed[0].error_ns);
  CHECK(placed[0].bound_ns == 0);
  // The first of them is what the others' distances are to.
  placed = on_one_time({trace("b", 5, DAY + 7, alone), trace("a", 5, DAY)});
  CHECK_FALSE(placed[1].bound_ns);
  CHECK(placed[1].error_ns);

  placed = on_one_time({trace("a", 5, DAY, {}), trace("b", 5, DAY)});
  CHECK_FALSE(placed[1].bound_ns);
  CHECK_THAT(placed[0].why_unknown, ContainsSubstring("does not say how far"));
}

TEST_CASE("A trace of another boot without a time of day cannot be placed") {
  TraceTimes without = trace("b", 5, 0);
  without.at_end = {};
  auto placed = on_one_time({trace("a", 5, DAY), without});
  CHECK(placed[0].why_not.empty());
  CHECK_THAT(placed[1].why_not, ContainsSubstring("time of day"));
  // Without its monotonic clock, a trace's boot says nothing.
  placed = on_one_time({trace("a", 5, DAY), trace("a", 0, DAY + 3)});
  CHECK(placed[1].boot == 1);
  CHECK(placed[1].offset_ns == 3);
  CHECK(placed[1].alignment == Alignment::time_of_day);
  placed = on_one_time({trace("", 5, DAY), trace("", 5, DAY)});
  CHECK(placed[1].boot == 1);
}

TEST_CASE("No clock makes sums overflow") {
  constexpr std::uint64_t MAX = ~std::uint64_t{0};
  constexpr std::int64_t LEAST = std::numeric_limits<std::int64_t>::min();
  for (std::uint64_t up : {std::uint64_t{0}, MAX / 4, MAX / 2, MAX})
    for (std::uint64_t day : {std::uint64_t{1}, MAX / 4, MAX / 2, MAX})
      for (std::int64_t offset : {LEAST, std::int64_t{0}, std::int64_t{1} << 62}) {
        TraceTimes odd = trace("a", up, day, ClockError{offset, MAX, MAX, 0});
        odd.since = odd.end = MAX;
        auto placed = on_one_time({trace("b", 5, DAY), odd});
        CHECK((!placed[1].why_not.empty() || !placed[1].error_ns || placed[1].bound_ns));
      }
}

TEST_CASE("Machines whose ranks met are placed by that, if it says more than their clocks") {
  // The second began 2 s later, and its time of day is wrong by 40 ms.
  auto first = trace("a", 50 * SECOND, DAY, error_of(100'000)),
       second = trace("b", 9 * SECOND, DAY + 2040 * MS, error_of(100'000));
  std::vector<std::vector<Meeting>> met(2);
  for (std::uint64_t i = 0; i < 100; i++) {
    constexpr std::uint64_t TRANSFER = MS / 10;
    std::uint64_t at = 53 * SECOND + i * SECOND / 20, other = at - 43 * SECOND, late = i % 2 * MS;
    met[0].push_back({{7, i, 0}, at + late, at + MS + TRANSFER});
    met[1].push_back({{7, i, 0}, other + MS - late, other + MS + TRANSFER});
  }
  auto placed = on_one_time({first, second}, met);
  CHECK(placed[1].alignment == Alignment::collectives);
  CHECK(placed[0].alignment == Alignment::same_boot);
  REQUIRE(placed[1].bound_ns);
  CHECK(*placed[1].bound_ns < 10 * MS);
  CHECK(placed[1].offset_ns - placed[0].offset_ns + *placed[1].bound_ns >= 2 * SECOND);
  CHECK(placed[1].offset_ns - placed[0].offset_ns <= 2 * SECOND + *placed[1].bound_ns);
  CHECK(placed[1].error_ns == *placed[0].error_ns + *placed[1].bound_ns);
  // Clocks that are kept better than that are used.
  for (TraceTimes* one : {&first, &second}) {
    one->at_begin.error = one->at_end->error = error_of(1);
    one->end = SECOND;
    one->at_end->monotonic = one->at_begin.monotonic + SECOND;
    one->at_end->realtime = one->at_begin.realtime + SECOND;
  }
  CHECK(on_one_time({first, second}, met)[1].alignment == Alignment::time_of_day);
  // Without any time of day, it is enough that they met.
  for (TraceTimes* one : {&first, &second}) {
    one->at_begin.realtime = 0;
    one->at_end.reset();
  }
  placed = on_one_time({first, second}, met);
  CHECK(placed[1].why_not.empty());
  CHECK(placed[1].alignment == Alignment::collectives);
  CHECK_FALSE(placed[1].error_ns);
  CHECK(placed[1].bound_ns);
  met[1].clear();
  CHECK_FALSE(on_one_time({first, second}, met)[1].why_not.empty());
}
