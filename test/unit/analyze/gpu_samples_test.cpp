#include "analyze/derived/gpu_samples.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/analyzing.hpp"
#include "trace/write/gpu_lines.hpp"

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
  sample.residents = {10, 100'000'010, {{4242, 60'000'000}, {0, 1'000}}, 2'000'000};
  std::string line = sample_line(sample);
  GpuSample back = read_back(line);
  CHECK(sample_line(back) == line);
  CHECK(back.energy_j == sample.energy_j);
  CHECK(back.throttle == 0x84u);
  sample = {};
  CHECK(sample_line(read_back(sample_line(sample))) == sample_line(sample));
}

TEST_CASE("What no GPU can report is left out of a sample that another program has written") {
  GpuSample sample = read_back(
      R"({"type":"gpu","op":"sample","ts":5,"gpu":-1,"window_ms":1e300,"sm_active":-1,)"
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

TEST_CASE("No process has a GPU for longer than the time that is reported") {
  auto residents_of = [](std::string_view rest) {
    return read_back(R"({"type":"gpu","op":"sample","ts":5,"gpu":0,)" + std::string(rest) + "}")
        .residents;
  };
  for (const char* impossible :
       {R"("residents":{},"resident_from":1,"resident_to":2)", R"("residents":[])",
        R"("residents":[],"resident_from":2,"resident_to":2)",
        R"("residents":[],"resident_from":-1,"resident_to":2)",
        R"("residents":[],"resident_from":"1","resident_to":2)",
        R"("residents":[],"resident_from":0,"resident_to":18446744073709551615)",
        R"("residents":[],"resident_from":0,"resident_to":9223372036854775807)"})
    CHECK_FALSE(residents_of(impossible));
  auto residents =
      residents_of(R"("residents":[1,{"pid":7,"ms":1e9},{"pid":-1,"ms":0.5},{"pid":8,"ms":1e300}],)"
                   R"("resident_from":5,"resident_to":1000005,"resident_unknown_ms":0.25)");
  REQUIRE(residents);
  CHECK(residents->unknown_ns == 250'000);
  REQUIRE(residents->processes.size() == 3);
  CHECK(residents->processes[0].pid == 7);
  CHECK(residents->processes[0].ns == 0);  // no time is that long
  CHECK(residents->processes[1].pid == 0);
  CHECK(residents->processes[1].ns == 500'000);
  CHECK(residents->processes[2].ns == 0);
  residents = residents_of(
      R"("residents":[{"pid":7,"ms":0.75},{"pid":8,"ms":0.75}],"resident_from":0,"resident_to":1000000)");
  REQUIRE(residents);
  CHECK(residents->processes[0].ns == 750'000);
  CHECK(residents->processes[1].ns == 250'000);
}
