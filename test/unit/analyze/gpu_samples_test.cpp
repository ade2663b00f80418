#include "analyze/gpu_samples.hpp"

#include <catch2/catch_test_macros.hpp>

#include "sink/gpu_lines.hpp"
#include "support/analyzing.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

GpuSample read_back(const std::string& text) {
  LineParser parser;
  GpuSample sample;
  std::size_t lines = 0;
  each_line(parser, text, [&](const Line& line) {
    CHECK(line.kind == LineKind::gpu_sample);
    sample = sample_in(line);
    lines++;
  });
  CHECK(lines == 1);
  return sample;
}

}  // namespace

TEST_CASE("A sample is read as it was written") {
  GpuSample sample;
  sample.ts = 98'765'432'100;
  sample.device = 3;
  sample.window_ns = 100'500'000;
  double value = 1;
#define GPU_FIGURE(key, unit, decimals, most, title) sample.key = value++;
#include "cudabpf/gpu_figures.def"
#undef GPU_FIGURE
  sample.throttle = 0x4 | 0x80;
  sample.processes = {{4242, 1 << 20}, {7, std::nullopt}};
  std::string line = sample_line(sample);
  GpuSample back = read_back(line);
  CHECK(sample_line(back) == line);
  CHECK(back.energy_j == sample.energy_j);
  CHECK(back.throttle == 0x84u);
  sample = {};
  CHECK(sample_line(read_back(sample_line(sample))) == sample_line(sample));
}

TEST_CASE("What no GPU can tell is left out of a sample that somebody else has written") {
  GpuSample sample = read_back(
      R"({"type":"gpu","op":"sample","ts":5,"device":-1,"window_ms":1e300,"sm_active":-1,)"
      R"("sm_occupancy":1e308,"power_w":"700","energy_j":null,"temperature_c":[61],"memory_used":1e16,)"
      R"("sm_clock_mhz":1755,"throttle":["none",4,"thermal"],)"
      R"("processes":[1,{"pid":"x"},{"pid":-4},{"pid":1e300},{"pid":9,"memory":-1}]})");
  CHECK(sample.ts == 5);
  CHECK(sample.device == 0);
  CHECK_FALSE(sample.window_ns);
  CHECK_FALSE(sample.sm_active);
  CHECK_FALSE(sample.sm_occupancy);
  CHECK_FALSE(sample.power_w);
  CHECK_FALSE(sample.energy_j);
  CHECK_FALSE(sample.temperature_c);
  CHECK_FALSE(sample.memory_used);
  CHECK(sample.sm_clock_mhz == 1755);
  CHECK(sample.throttle == 0x20u);
  REQUIRE(sample.processes);
  REQUIRE(sample.processes->size() == 1);
  CHECK(sample.processes->front().pid == 9);
  CHECK_FALSE(sample.processes->front().memory);
}

TEST_CASE("Other lines about GPUs are no samples") {
  LineParser parser;
  each_line(parser, R"({"type":"gpu","op":"rest","ts":5})",
            [](const Line& line) { CHECK(line.kind == LineKind::other); });
}
