#include "trace/write/gpu_lines.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "trace/header.hpp"

using namespace cudabpf;

TEST_CASE("A sample's line has what was read, and nothing else") {
  GpuSample sample;
  sample.ts = 1234;
  CHECK(sample_line(sample) == R"({"type":"gpu","op":"sample","ts":1234,"gpu":0})"
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
      R"({"type":"gpu","op":"sample","ts":1234,"gpu":7,"window_ms":100.5,"sm_active":96.4,)"
      R"("sm_occupancy":0.0,"pcie_rx":1048576,"power_w":704.1,"energy_j":9000000012.345,)"
      R"("sm_clock_mhz":1755,"memory_used":85899345920,"throttle":["power_cap","hardware_thermal"],)"
      R"("processes":[{"pid":4242,"memory":1048576},{"pid":7}]})"
      "\n");
  sample = {};
  sample.throttle = 0;
  sample.processes.emplace();
  CHECK(sample_line(sample) ==
        R"({"type":"gpu","op":"sample","ts":0,"gpu":0,"throttle":[],"processes":[]})"
        "\n");
  sample = {};
  sample.residents = {10, 100'000'010, {{4242, 60'000'500}, {0, 1'000}}, 2'000'000};
  CHECK(sample_line(sample) ==
        R"({"type":"gpu","op":"sample","ts":0,"gpu":0,"residents":[{"pid":4242,"ms":60.001},)"
        R"({"ms":0.001}],"resident_from":10,"resident_to":100000010,"resident_unknown_ms":2.000})"
        "\n");
}

TEST_CASE("The header says how GPUs are sampled, or why they are not") {
  Session session;
  auto header = [&] { return nlohmann::json::parse(header_line(session, {})); };
  CHECK_FALSE(header().contains("sampling"));
  session.sampling.why_not = "--no-sample";
  CHECK(header()["sampling"] == nlohmann::json::parse(R"({"source":"none","why":"--no-sample"})"));
  session.sampling.switches_why_not = "this takes root (CAP_SYS_ADMIN)";
  CHECK(header()["sampling"]["switches_why"] == "this takes root (CAP_SYS_ADMIN)");
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
      {"gpu": 0, "name": "NVIDIA H200", "uuid": "GPU-1", "bus_id": "00000000:3B:00.0",
       "activity": "gpm", "power": "instant"},
      {"gpu": 1, "name": "NVIDIA H200", "uuid": "GPU-1", "bus_id": "00000000:3B:00.0",
       "activity": "utilization", "why": "this GPU has no GPM", "lacks": ["power", "energy"]}]})"));
  sampling.switches = true;
  CHECK(header()["sampling"]["switches"] == "fecs");
  CHECK_FALSE(header()["sampling"].contains("switches_why"));
}

namespace {
std::string line_of(const GpuOperation& work) {
  std::string line(work_bound(work), 'x');
  line.resize(static_cast<std::size_t>(put_work(line.data(), work) - line.data()));
  return line;
}
}  // namespace

TEST_CASE("What a GPU did") {
  GpuOperation work;
  work.ts = 41006201;
  work.duration = 12416;
  work.pid = 4242;
  work.call = 9;
  work.stream = 0;
  work.queue = 7;
  KernelName name;
  name.json = "\"add\"";
  work.kernel = &name;
  work.grid = {4096, 1, 1};
  work.block = {256, 1, 1};
  work.device = 0;
  work.node = 3;
  CHECK(line_of(work) ==
        R"({"type":"gpu","op":"kernel","ts":41006201,"duration_us":12.416,"pid":4242,"call":9,)"
        R"("stream":"0x0","queue":7,"kernel":"add","grid":[4096,1,1],"block":[256,1,1],)"
        R"("shared":0,"device":0,"node":3})"
        "\n");

  work = {};
  work.op = GpuOperation::Op::copy;
  work.why_not = Unjoined::no_call;
  work.size = 4096;
  work.direction = Op::DtoH;
  CHECK(line_of(work) ==
        R"({"type":"gpu","op":"copy","ts":0,"duration_us":0.000,"pid":0,"unjoined":"no_call",)"
        R"("size":4096,"queue":0,"direction":"DtoH"})"
        "\n");
}

TEST_CASE("The longest that a line about a GPU's work can be") {
  constexpr auto MOST32 = ~std::uint32_t{0};
  constexpr auto MOST64 = ~std::uint64_t{0};
  GpuOperation work;
  work.ts = work.duration = work.call = MOST64;
  work.why_not = Unjoined::no_call;
  work.pid = work.queue = work.shared = MOST32;
  work.device = work.node = MOST32;
  work.stream = work.size = MOST64;
  work.grid = work.block = {MOST32, MOST32, MOST32};
  work.direction = Op::HtoD;
  CHECK(line_of(work).size() <= work_bound(work));
}

TEST_CASE("Whether GPU times are reported for a process") {
  GpuTimes times;
  times.ts = 5;
  times.pid = 7;
  times.version = "13.0.1";
  times.library = "/lib/libcupti.so.13";
  CHECK(times_line(times) == R"({"type":"gpu","op":"times","ts":5,"pid":7,"cupti":"13.0.1",)"
                             R"("path":"/lib/libcupti.so.13","graphs":"nodes"})"
                             "\n");
  times.why_not = "no libcupti was found";
  CHECK(times_line(times).ends_with(R"(,"why":"no libcupti was found"})"
                                    "\n"));
}
