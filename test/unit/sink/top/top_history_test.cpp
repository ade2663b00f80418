#include "sink/top/top_history.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/units.hpp"

using namespace cudabpf;
using Of = TopHistory::Of;
using Parts = std::vector<std::optional<double>>;

namespace {

TopInterval interval_of(std::uint64_t begin, std::uint64_t end, std::uint64_t calls) {
  TopInterval interval;
  interval.begin_ns = begin * SECOND;
  interval.end_ns = end * SECOND;
  interval.all.calls = calls;
  return interval;
}

}  // namespace

TEST_CASE("a history has what was reported for each part of the last minute") {
  TopHistory history;
  CHECK(history.parts(Of::calls, 2) == Parts{{}, {}});
  history.add(interval_of(0, 10, 100));
  CHECK(history.parts(Of::calls, 6) == Parts{{}, {}, {}, {}, {}, 10.0});
  history.add(interval_of(10, 30, 400));
  CHECK(history.parts(Of::calls, 6) == Parts{{}, {}, {}, 10.0, 20.0, 20.0});
  CHECK(history.last(Of::calls) == 20);
  CHECK(history.most(Of::calls) == 20);
  CHECK_FALSE(history.most(Of::activity));
}

TEST_CASE("a part of a history is the mean over its time") {
  TopHistory history;
  history.add(interval_of(0, 5, 50));
  history.add(interval_of(5, 20, 0));
  CHECK(history.parts(Of::calls, 3) == Parts{{}, {}, 2.5});
  history.add(interval_of(20, 25, 5));  // parts stay where they are
  CHECK(history.parts(Of::calls, 3) == Parts{{}, 2.5, 1.0});
}

TEST_CASE("a history forgets what is older than a minute, but not what was lost") {
  TopHistory history;
  TopInterval first = interval_of(0, 1, 1000);
  first.lost.events = 7;
  history.add(first);
  for (std::uint64_t second = 1; second < 100; second++)
    history.add(interval_of(second, second + 1, 1));
  CHECK(history.most(Of::calls) == 1);
  CHECK(history.parts(Of::calls, 60) == Parts(60, 1.0));
  CHECK(history.lost().events == 7);
  CHECK_FALSE(history.lost().uncounted);
  TopInterval last = interval_of(100, 101, 1);
  last.lost.uncounted = true;
  history.add(last);
  CHECK(history.lost().uncounted);
}

TEST_CASE("an interval of no length breaks no history") {
  TopHistory history;
  history.add(interval_of(3, 3, 0));
  CHECK(history.parts(Of::calls, 3).size() == 3);
}

TEST_CASE("a history knows the most of each GPU, and the mean of their activity") {
  TopHistory history;
  TopInterval interval = interval_of(0, 1, 0);
  for (std::uint32_t device = 0; device < 2; device++) {
    GpuSample sample;
    sample.device = device;
    sample.window_ns = SECOND;
    sample.utilization = 20 + 40 * device;
    sample.power_w = 300;
    sample.memory_used = 1e9;
    interval.gpus.add(sample);
  }
  history.add(interval);
  CHECK(history.last(Of::activity) == 40);
}
