#include "collect/gpu/gpu_reader.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "collect/gpu/scripted_nvml.hpp"
#include "support/units.hpp"

using namespace cudabpf;
using namespace samples;
using nvml::Return;

namespace {

constexpr GpuReader::What ALL{.activity = true, .slow = true, .energy = true};

struct Reading {
  explicit Reading(NvmlScript as = {}) {
    script = std::move(as);
    nvml = scripted_nvml();
  }
  std::unique_ptr<GpuReader> open() {
    auto reader = GpuReader::open(nvml, 3);
    REQUIRE(reader);
    return std::move(*reader);
  }
  nvml::Functions nvml;
};

}  // namespace

TEST_CASE("A GPU is read as NVML reports: activity by GPM, power at this instant") {
  Reading reading;
  auto reader = reading.open();
  const SampledGpu& gpu = reader->gpu();
  CHECK(gpu.device == 3);
  CHECK(gpu.uuid == "GPU-1");
  CHECK(gpu.name == std::string(96, 'x'));
  CHECK(gpu.bus_id == "00000000:3B:00.0");
  CHECK(gpu.activity == "gpm");
  CHECK(gpu.why.empty());
  CHECK(gpu.power == "instant");
  CHECK(gpu.lacks == std::vector<std::string>{"nvlink_rx", "nvlink_tx"});

  GpuSample first = reader->read(10 * MS, ALL);  // there is no window yet
  CHECK(first.ts == 10 * MS);
  CHECK(first.device == 3);
  CHECK_FALSE(first.window_ns);
  CHECK_FALSE(first.sm_active);
  CHECK(first.power_w == 704.1);
  CHECK(first.energy_j == 12345.678);
  CHECK(first.sm_clock_mhz == 1755);
  CHECK(first.mem_clock_mhz == 2619);
  CHECK(first.throttle == 5u);
  CHECK(first.temperature_c == 61);
  CHECK(first.memory_used == static_cast<double>(80ull << 30));
  REQUIRE(first.processes);
  REQUIRE(first.processes->size() == 1);
  CHECK(first.processes->front().pid == 4242);
  CHECK(first.processes->front().memory == 1u << 20);

  GpuSample second = reader->read(112 * MS, {.activity = true});
  CHECK(second.window_ns == 102 * MS);
  CHECK(second.sm_active == 96.4);
  CHECK(second.sm_occupancy == 14.3);
  CHECK(second.tensor_active == 93.6);
  CHECK(second.dram_active == 16.3);
  CHECK(second.pcie_tx == 1024 * 1024);
  CHECK(second.pcie_rx == 2 * 1024 * 1024);
  CHECK_FALSE(second.nvlink_rx);
  CHECK_FALSE(second.utilization);
  CHECK_FALSE(second.energy_j);
  CHECK_FALSE(second.temperature_c);
  CHECK_FALSE(second.sm_clock_mhz);
  CHECK_FALSE(second.throttle);
  CHECK_FALSE(second.processes);
  CHECK(reader->take_failures().count == 0);
  CHECK(script.requests["utilization"] == 0);
  reader.reset();
  CHECK(script.gpm_samples == 0);
}

TEST_CASE("What the GPU or its driver does not report is listed, not read again, and no failure") {
  Reading reading({.gpm = false,
                   .results = {{"instant", Return::not_supported},
                               {"energy", Return::not_supported},
                               {"processes", Return::no_permission}}});
  reading.nvml.temperature = nullptr;
  reading.nvml.memory_v2 = nullptr;
  auto reader = reading.open();
  CHECK(reader->gpu().activity == "utilization");
  CHECK(reader->gpu().why == "this GPU has no GPM");
  CHECK(reader->gpu().power == "average");
  CHECK(reader->gpu().lacks ==
        std::vector<std::string>{"energy", "temperature", "memory", "processes"});
  unsigned before = script.requests["energy"];
  GpuSample sample = reader->read(MS, ALL);
  CHECK(sample.utilization == 87);
  CHECK(sample.memory_utilization == 12);
  CHECK_FALSE(sample.window_ns);
  CHECK(sample.power_w == 600);
  CHECK_FALSE(sample.energy_j);
  CHECK_FALSE(sample.temperature_c);
  CHECK_FALSE(sample.memory_used);
  CHECK_FALSE(sample.processes);
  CHECK(script.requests["energy"] == before);
  CHECK(reader->take_failures().count == 0);

  reading.nvml.gpm_get = nullptr;
  CHECK(reading.open()->gpu().why == "this driver has no GPM");
  Reading denied({.results = {{"activity", Return::no_permission}}});
  auto other = denied.open();
  CHECK(other->gpu().why == "this user may not read GPM");
  CHECK(other->gpu().activity == "utilization");
  CHECK(script.gpm_samples == 2);
  other.reset();
  CHECK(script.gpm_samples == 0);
}

TEST_CASE("A GPU that reports nothing at all is sampled without harm") {
  script = {};
  nvml::Functions none;
  none.handle = scripted_nvml().handle;
  auto reader = GpuReader::open(none, 0);
  REQUIRE(reader);
  CHECK((*reader)->gpu().activity == "none");
  CHECK((*reader)->gpu().power.empty());
  CHECK((*reader)->gpu().lacks.size() == 8);
  GpuSample sample = (*reader)->read(1, ALL);
  CHECK_FALSE(sample.power_w);
  CHECK_FALSE(sample.throttle);
  CHECK((*reader)->take_failures().count == 0);
}

TEST_CASE("A reading that has worked and fails is counted, and the others go on") {
  Reading reading;
  auto reader = reading.open();
  reader->read(0, ALL);
  script.results["temperature"] = static_cast<Return>(999);
  script.results["activity"] = static_cast<Return>(999);
  GpuSample sample = reader->read(100 * MS, ALL);
  CHECK_FALSE(sample.temperature_c);
  CHECK_FALSE(sample.window_ns);
  CHECK(sample.power_w);
  auto failures = reader->take_failures();
  CHECK(failures.count == 2);
  CHECK(failures.last == "GPU 3: temperature could not be read (error 999)");
  CHECK(reader->take_failures().count == 0);
  script.results.clear();  // the window reaches back to the last counters
  CHECK(reader->read(200 * MS, ALL).window_ns == 200 * MS);
}

TEST_CASE("Figures that cannot be are left out and counted; NaN is what NVML says for none") {
  Reading reading;
  auto reader = reading.open();
  reader->read(0, ALL);
  script.metrics[2] = std::nan("");
  CHECK_FALSE(reader->read(100 * MS, ALL).sm_active);
  CHECK(reader->take_failures().count == 0);
  for (double odd : {-1.0, 1e300, std::numeric_limits<double>::infinity(), 101.5}) {
    script.metrics[2] = odd;
    GpuSample sample = reader->read(200 * MS, ALL);
    CHECK_FALSE(sample.sm_active);
    CHECK(sample.sm_occupancy == 14.3);
    CHECK(reader->take_failures().last == "GPU 3: NVML's sm_active cannot be");
  }
  script.power_kind = nvml::ValueKind::real;
  script.milliwatts = 4'000'000'000;
  script.memory = ~0ull;
  script.millijoules = ~0ull;
  GpuSample sample = reader->read(300 * MS, ALL);
  CHECK_FALSE(sample.power_w);
  CHECK_FALSE(sample.memory_used);
  CHECK_FALSE(sample.energy_j);
}

TEST_CASE("NVML's list of processes is not believed beyond the space that it had") {
  Reading reading({.processes = {{7, nvml::NOT_AVAILABLE, 0, 0}}, .more_processes = 100'000});
  auto reader = reading.open();
  GpuSample sample = reader->read(0, ALL);
  REQUIRE(sample.processes);
  CHECK(sample.processes->size() == 256);
  CHECK(sample.processes->front().pid == 7);
  CHECK_FALSE(sample.processes->front().memory);
}

TEST_CASE("A GPU that is lost is reported once, and not read again") {
  Reading reading;
  auto reader = reading.open();
  reader->read(0, ALL);
  script.results["clock"] = Return::gpu_is_lost;
  reader->read(100 * MS, ALL);
  CHECK(reader->is_lost());
  auto failures = reader->take_failures();
  CHECK(failures.count == 1);
  CHECK(failures.last == "GPU 3 is lost");
  unsigned before = script.requests["instant"];
  GpuSample sample = reader->read(200 * MS, ALL);
  CHECK_FALSE(sample.power_w);
  CHECK(script.requests["instant"] == before);
  CHECK(reader->take_failures().count == 0);
}
