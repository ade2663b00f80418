#include "merge/ahead.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf::merge;

namespace {

constexpr std::int64_t MICRO = 1000, MILLI = 1'000'000;
constexpr std::uint64_t ONE_SECOND = 1'000'000'000;

// Ranks of two machines, whose clocks differ by `ahead`, meet each 10 ms. Now the one comes late,
// now the other.
struct Job {
  std::vector<Meeting> first, second;

  void meet(std::uint64_t seq, std::uint64_t at, std::int64_t late, std::int64_t ahead) {
    constexpr std::uint64_t TRANSFER = 50 * MICRO;
    std::uint64_t end = at + static_cast<std::uint64_t>(std::abs(late)) + TRANSFER;
    std::uint64_t of_first = at + static_cast<std::uint64_t>(std::max<std::int64_t>(late, 0)),
                  of_second = at + static_cast<std::uint64_t>(std::max<std::int64_t>(-late, 0));
    auto moved = [&](std::uint64_t time) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(time) - ahead);
    };
    first.push_back({{7, seq, 0}, of_first, end});
    second.push_back({{7, seq, 0}, moved(of_second), moved(end)});
  }
};

Job job(std::int64_t ahead, std::int64_t ppm = 0, std::uint64_t from = ONE_SECOND) {
  Job job;
  for (std::uint64_t i = 1; i <= 100; i++) {
    std::uint64_t at = from + i * 10 * MILLI;
    job.meet(i, at, i % 2 ? 2 * MILLI : -2 * MILLI,
             ahead + static_cast<std::int64_t>(at) * ppm / 1'000'000);
  }
  return job;
}

bool is_within(const Ahead& found, std::int64_t truth) {
  return static_cast<std::uint64_t>(std::abs(found.ns - truth)) <= found.bound_ns;
}

}  // namespace

TEST_CASE("How far a clock is ahead lies between what late ranks of either machine allow") {
  for (std::int64_t truth : {std::int64_t{0}, 700 * MILLI, -300 * MILLI}) {
    Job of = job(truth);
    auto found = ahead_of(of.first, of.second, {of.second.front().begin, of.second.back().end});
    REQUIRE(found);
    CHECK(is_within(*found, truth));
    // A transfer's time, and what clocks may run wrong by until the other one is late.
    CHECK(found->bound_ns < static_cast<std::uint64_t>(75 * MICRO));
  }
}

TEST_CASE("A clock that runs wrong stays within the bound, wherever there are events") {
  constexpr std::int64_t PPM = 400;
  Job of = job(5 * MILLI, PPM);
  auto found = ahead_of(of.first, of.second, {of.second.front().begin, of.second.back().end});
  REQUIRE(found);
  for (std::uint64_t at : {ONE_SECOND + 10 * MILLI, 2 * ONE_SECOND})
    CHECK(is_within(*found, 5 * MILLI + static_cast<std::int64_t>(at) * PPM / 1'000'000));
  // Before the first meeting, nothing else limits it.
  auto early = ahead_of(of.first, of.second, {0, of.second.back().end});
  REQUIRE(early);
  CHECK(is_within(*early, 5 * MILLI));
  CHECK(early->bound_ns > found->bound_ns + ONE_SECOND / 2000);
}

TEST_CASE(
    "A wait of seconds limits the clocks where it begins from one side, and where it ends from the "
    "other") {
  constexpr std::int64_t PPM = 400, LONG = 5'000'000'000;
  auto begins = static_cast<std::uint64_t>(LONG);
  auto ahead_at = [&](std::uint64_t at) { return static_cast<std::int64_t>(at) * PPM / 1'000'000; };
  // The second's clock: `at` of the first's, less what that is ahead then.
  auto on_second = [&](std::uint64_t at) { return at - static_cast<std::uint64_t>(ahead_at(at)); };
  std::uint64_t ends = begins + static_cast<std::uint64_t>(LONG), step = 50'000;
  std::vector<Meeting> first = {{{7, 1, 0}, begins - 10 * step, begins},
                                {{7, 2, 0}, ends - step, ends}},
                       second = {{{7, 1, 0}, on_second(begins - step), on_second(begins)},
                                 {{7, 2, 0}, on_second(begins), on_second(ends)}};
  auto found = ahead_of(first, second, {second.front().begin, second.back().end});
  REQUIRE(found);
  for (std::uint64_t at : {begins, ends}) CHECK(is_within(*found, ahead_at(at)));
}

TEST_CASE("Machines that met nowhere, or cannot have met so, say nothing of each other's clocks") {
  Job of = job(0), other = job(0);
  CHECK_FALSE(ahead_of(of.first, {}, {0, 1}));
  for (Meeting& one : other.second) one.key.identity = 8;
  CHECK_FALSE(ahead_of(of.first, other.second, {0, 1}));
  Job set = job(0);
  for (std::size_t i = 50; i < set.second.size(); i++) {  // the clock was set
    set.second[i].begin += ONE_SECOND;
    set.second[i].end += ONE_SECOND;
  }
  CHECK_FALSE(ahead_of(set.first, set.second, {0, 1}));
}

TEST_CASE("Several ranks of a machine each limit it") {
  Job of = job(3 * MILLI);
  std::vector<Meeting> both;
  for (Meeting one : of.first) {
    both.push_back(one);
    one.begin = one.end - 10 * MICRO;  // a rank that was later still
    both.push_back(one);
  }
  std::pair events{of.second.front().begin, of.second.back().end};
  auto by_one = ahead_of(of.first, of.second, events), by_both = ahead_of(both, of.second, events);
  REQUIRE(by_one);
  REQUIRE(by_both);
  CHECK(is_within(*by_both, 3 * MILLI));
  CHECK(by_both->bound_ns < by_one->bound_ns);
}
