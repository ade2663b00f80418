#include "analyze/gaps/critical_path.hpp"

#include "support/random_numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>

using namespace cudabpf::analyze;

namespace {
constexpr Name A{1}, B{2}, C{3};

}  // namespace

TEST_CASE("A path goes back through a queue to the call that began it, and the host before") {
  // The host issues at 10 and 12; a from 20 to 50, b right after it to 90; a wait ends at 95.
  std::vector<PathOperation> operations{{20, 50, 1, 10, 0, 1, A}, {52, 90, 2, 12, 0, 1, B}};
  CriticalPath path = critical_path(operations, {}, 0, 100);
  CHECK(path.working == 68);
  CHECK(path.latency == 12);
  CHECK(path.host == 20);
  REQUIRE(path.operations.size() == 2);
  CHECK(path.operations[0].name == B);
  CHECK(path.operations[0].time == 38);
}

TEST_CASE("What ran beside the path is not on it, and an event leads to another queue") {
  std::vector<PathOperation> operations{{10, 80, 1, 5, 0, 1, A},    // the last waits for this
                                        {10, 40, 2, 6, 0, 2, C},    // in the queue of the last
                                        {85, 100, 3, 8, 1, 2, B}};  // depends on the first
  CriticalPath path = critical_path(operations, {}, 0, 100);
  REQUIRE(path.operations.size() == 2);
  CHECK(path.operations[0].name == A);
  CHECK(path.operations[0].time == 70);
  CHECK(path.working == 85);
  CHECK(path.latency == 10);
  CHECK(path.host == 5);
}

TEST_CASE("A late host leads through its wait to the work that it waited for") {
  std::vector<PathOperation> operations{{10, 40, 1, 5, 0, 1, A}, {70, 90, 2, 65, 0, 1, B}};
  std::vector<PathWait> waits{{7, 45}, {50, 51}};  // the second had nothing to wait for
  CriticalPath path = critical_path(operations, waits, 0, 100);
  CHECK(path.working == 50);
  CHECK(path.host == 10 + 25 + 5);
  CHECK(path.latency == 5 + 5);
}

TEST_CASE("Without work, or without calls, the rest is the host's") {
  CHECK(critical_path({}, {}, 10, 50).host == 40);
  std::vector<PathOperation> operations{{20, 30, 0, 0, 0, 1, A}};
  CriticalPath path = critical_path(operations, {}, 10, 50);
  CHECK(path.working == 10);
  CHECK(path.host == 30);
  CHECK(critical_path(operations, {}, 50, 10).time() == 0);
}

TEST_CASE("A path covers all of the time, whatever ran") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; round++) {
    std::vector<PathOperation> operations;
    std::uint64_t begin = 0;
    for (unsigned i = any(random, 30); i; i--) {
      begin += any(random, 9);
      operations.push_back({begin, begin + any(random, 40), 1 + any(random, 20), any(random, 200),
                            any(random, 20), any(random, 3), Name{1 + any(random, 4)}});
    }
    std::vector<PathWait> waits;
    for (std::uint64_t end = 0; end < 150; end += 1 + any(random, 60))
      waits.push_back({end - std::min<std::uint64_t>(end, any(random, 30)), end});
    CriticalPath path = critical_path(operations, waits, 20, 180);
    CHECK(path.working + path.latency + path.host == 160);
  }
}
