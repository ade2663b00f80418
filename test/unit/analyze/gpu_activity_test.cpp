#include "analyze/timeline/gpu_activity.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

GpuSample window(std::uint64_t from, std::uint64_t to, double active) {
  GpuSample sample;
  sample.ts = to;
  sample.window_ns = to - from;
  sample.sm_active = active;
  return sample;
}

}  // namespace

TEST_CASE("A GPU's activity over time is the mean of what was sampled, in each column") {
  GpuActivity activity;
  activity.add(window(100, 200, 100));
  activity.add(window(200, 300, 50));
  activity.add(window(400, 450, 10));
  using Columns = std::vector<std::uint64_t>;
  CHECK(activity.columns(TimeScale({{0, 500}}, 5, 0)) == Columns{0, 100, 50, 0, 10});
  CHECK(activity.columns(TimeScale({{0, 500}}, 2, 0)) == Columns{83, 30});
  CHECK(activity.columns(TimeScale({{150, 250}}, 4, 0)) == Columns{100, 100, 50, 50});
}

TEST_CASE(
    "The rest of windows that overlap counts; those that are empty or begin before the trace do "
    "not") {
  GpuActivity activity;
  activity.add(window(100, 200, 50));
  activity.add(window(150, 250, 100));
  GpuSample early = window(0, 300, 100);
  early.window_ns = 400;
  activity.add(early);
  activity.add(window(400, 400, 100));
  activity.add({});
  CHECK(activity.columns(TimeScale({{0, 400}}, 4, 0)) == std::vector<std::uint64_t>{0, 50, 100, 0});
}

TEST_CASE("The samples of days become fewer, and keep their mean") {
  GpuActivity activity;
  constexpr std::uint64_t COUNT = 1'000'000, WINDOW = 100'000'000;
  for (std::uint64_t i = 0; i < COUNT; i++)
    activity.add(window(i * WINDOW, (i + 1) * WINDOW, i < COUNT / 2 ? 80 : 20));
  auto columns = activity.columns(TimeScale({{0, COUNT * WINDOW}}, 4, 0));
  CHECK(columns == std::vector<std::uint64_t>{80, 80, 20, 20});
}
