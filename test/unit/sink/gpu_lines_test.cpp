#include "sink/gpu_lines.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "sink/event_lines.hpp"

using namespace cudabpf;

TEST_CASE("A sample's line has what was read, and nothing else") {
  GpuSample sample;
  sample.ts = 1234;
  CHECK(sample_line(sample) == R"({"type":"gpu","op":"sample","ts":1234,"device":0})"
                               "\n");
  sample.device = 7;
  sample.window_ns = 100'460'000;
  sample.sm_active = 96.4;
  sample.sm_occupancy = 0;
  sample.pcie_rx = 1048576;
  sample.power_w = 704.123;
  sample.energy_j = 9'000'000'012.345;
  sample.sm_clock_mhz = 1755;
  sample.memory_used = 85899345920;
  sample.throttle = 0x4 | 0x1 | 0x40 | 0xff00;  // idle and others are no throttling
  sample.processes = {{4242, 1 << 20}, {7, std::nullopt}};
  CHECK(
      sample_line(sample) ==
      R"({"type":"gpu","op":"sample","ts":1234,"device":7,"window_ms":100.5,"sm_active":96.4,)"
      R"("sm_occupancy":0.0,"pcie_rx":1048576,"power_w":704.1,"energy_j":9000000012.345,)"
      R"("sm_clock_mhz":1755,"memory_used":85899345920,"throttle":["power_cap","hardware_thermal"],)"
      R"("processes":[{"pid":4242,"memory":1048576},{"pid":7}]})"
      "\n");
  sample = {};
  sample.throttle = 0;
  sample.processes.emplace();
  CHECK(sample_line(sample) ==
        R"({"type":"gpu","op":"sample","ts":0,"device":0,"throttle":[],"processes":[]})"
        "\n");
}

TEST_CASE("The header says how GPUs are sampled, or why they are not") {
  Session session;
  auto header = [&] { return nlohmann::json::parse(header_line(session, {})); };
  CHECK_FALSE(header().contains("sampling"));
  session.sampling.why_not = "--no-sample";
  CHECK(header()["sampling"] == nlohmann::json::parse(R"({"source":"none","why":"--no-sample"})"));
  Sampling& sampling = session.sampling;
  sampling = {};
  sampling.period_ns = 20'000'000;
  sampling.window_ns = 100'000'000;
  sampling.slow_ns = 1'000'000'000;
  sampling.own_pids = true;
  SampledGpu gpu;
  gpu.name = "NVIDIA H200";
  gpu.uuid = "GPU-1";
  gpu.bus_id = "00000000:3B:00.0";
  gpu.activity = "gpm";
  gpu.power = "instant";
  sampling.gpus.push_back(gpu);
  gpu.device = 1;
  gpu.activity = "utilization";
  gpu.why = "this GPU has no GPM";
  gpu.power.clear();
  gpu.lacks = {"power", "energy"};
  sampling.gpus.push_back(gpu);
  CHECK(header()["sampling"] == nlohmann::json::parse(R"({
    "source": "nvml", "period_ms": 20, "window_ms": 100, "slow_ms": 1000, "own_pids": true,
    "gpus": [
      {"device": 0, "name": "NVIDIA H200", "uuid": "GPU-1", "bus_id": "00000000:3B:00.0",
       "activity": "gpm", "power": "instant"},
      {"device": 1, "name": "NVIDIA H200", "uuid": "GPU-1", "bus_id": "00000000:3B:00.0",
       "activity": "utilization", "why": "this GPU has no GPM", "lacks": ["power", "energy"]}]})"));
}
