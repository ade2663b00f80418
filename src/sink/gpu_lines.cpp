#include "sink/gpu_lines.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

namespace cudabpf {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t NS_IN_MS = 1'000'000;

void add_throttle(std::string& line, std::uint64_t reasons) {
  line += ",\"throttle\":[";
  const char* before = "";
  for (const ThrottleName& throttle : THROTTLES) {
    if (!(reasons & static_cast<std::uint64_t>(throttle.reason))) continue;
    line += fmt::format("{}\"{}\"", before, throttle.name);
    before = ",";
  }
  line += ']';
}

void add_processes(std::string& line, const std::vector<GpuProcess>& processes) {
  line += ",\"processes\":[";
  const char* before = "";
  for (const GpuProcess& process : processes) {
    line += fmt::format("{}{{\"pid\":{}", before, process.pid);
    if (process.memory) line += fmt::format(",\"memory\":{}", *process.memory);
    line += '}';
    before = ",";
  }
  line += ']';
}

Json gpu_fields(const SampledGpu& gpu) {
  Json out = {{"device", gpu.device},
              {"name", gpu.name},
              {"uuid", gpu.uuid},
              {"bus_id", gpu.bus_id},
              {"activity", gpu.activity}};
  if (!gpu.why.empty()) out["why"] = gpu.why;
  if (!gpu.power.empty()) out["power"] = gpu.power;
  if (!gpu.lacks.empty()) out["lacks"] = gpu.lacks;
  return out;
}

}  // namespace

std::string sample_line(const GpuSample& sample) {
  std::string line =
      fmt::format(R"({{"type":"gpu","op":"sample","ts":{},"device":{})", sample.ts, sample.device);
  if (sample.window_ns)
    line += fmt::format(",\"window_ms\":{:.1f}", static_cast<double>(*sample.window_ns) / NS_IN_MS);
#define GPU_FIGURE(key, unit, decimals, most, title) \
  if (sample.key) line += fmt::format(",\"" #key "\":{:." #decimals "f}", *sample.key);
#include "cudabpf/gpu_figures.def"
#undef GPU_FIGURE
  if (sample.throttle) add_throttle(line, *sample.throttle);
  if (sample.processes) add_processes(line, *sample.processes);
  return line + "}\n";
}

Json sampling_fields(const Sampling& sampling) {
  if (sampling.gpus.empty()) return {{"source", "none"}, {"why", sampling.why_not}};
  Json out = {{"source", "nvml"},
              {"period_ms", sampling.period_ns / NS_IN_MS},
              {"window_ms", sampling.window_ns / NS_IN_MS},
              {"slow_ms", sampling.slow_ns / NS_IN_MS}};
  if (sampling.own_pids) out["own_pids"] = true;
  if (!sampling.why_not.empty()) out["why"] = sampling.why_not;
  out["gpus"] = Json::array();
  for (const SampledGpu& gpu : sampling.gpus) out["gpus"].push_back(gpu_fields(gpu));
  return out;
}

}  // namespace cudabpf
