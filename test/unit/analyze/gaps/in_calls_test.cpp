#include "analyze/gaps/in_calls.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

#include "support/random_numbers.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

TEST_CASE("The time in calls of several threads is that of all moments in which one was in one") {
  constexpr std::size_t ALL = 4000;
  std::mt19937 random(1);
  auto upto = [&](std::uint64_t most) {
    return std::uint64_t{any(random, static_cast<unsigned>(most) + 1)};
  };
  struct Call {
    std::uint64_t begin, end;
  };
  std::vector<Call> calls;
  for (int i = 0; i < 300; i++) {
    std::uint64_t begin = upto(ALL - 1), longest = upto(9) ? 10 : 1000;
    calls.push_back({begin, std::min<std::uint64_t>(ALL, begin + upto(longest))});
  }
  std::sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) { return a.end < b.end; });
  // Lines of several threads may come a little late.
  for (std::size_t i = 0; i + 8 < calls.size(); i += 8)
    std::shuffle(calls.begin() + static_cast<std::ptrdiff_t>(i),
                 calls.begin() + static_cast<std::ptrdiff_t>(i + 8), random);
  InCalls in_calls;
  std::vector<bool> in_one(ALL);
  for (const Call& call : calls) {
    in_calls.add(call.begin, call.end);
    std::fill(in_one.begin() + static_cast<std::ptrdiff_t>(call.begin),
              in_one.begin() + static_cast<std::ptrdiff_t>(call.end), true);
  }
  for (int i = 0; i < 100; i++) {
    std::uint64_t begin = upto(ALL), end = begin + upto(ALL - begin);
    auto counted = std::count(in_one.begin() + static_cast<std::ptrdiff_t>(begin),
                              in_one.begin() + static_cast<std::ptrdiff_t>(end), true);
    CHECK(in_calls.time_in(begin, end) == static_cast<std::uint64_t>(counted));
  }
  in_calls.forget_until(ALL);
  CHECK(in_calls.time_in(0, ALL) == 0);
}

TEST_CASE("A call that comes far too late is left out") {
  InCalls in_calls;
  for (std::uint64_t i = 1; i <= 10'000; i++) in_calls.add(i * 100, i * 100 + 10);
  in_calls.add(50, 60);
  CHECK(in_calls.time_in(0, 100) == 0);
  in_calls.add(999'950, 999'960);
  CHECK(in_calls.time_in(999'900, 1'000'000) == 20);
}
