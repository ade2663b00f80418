#include "analyze/gpu_samples.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "analyze/trace/json_text.hpp"

namespace cudabpf::analyze {

namespace {

using Plain = nlohmann::json;

constexpr double NS_IN_MS = 1e6;
// No window that cudabpf takes is longer.
constexpr double LONGEST_MS = 24 * 3600 * 1e3;
constexpr std::size_t MOST_PROCESSES = 1024;

std::optional<double> number_in(const Plain& object, const char* key, double most) {
  auto at = object.find(key);
  if (at == object.end() || !at->is_number()) return std::nullopt;
  double number = at->get<double>();
  if (!(number >= 0 && number <= most)) return std::nullopt;
  return number;
}

std::uint64_t throttle_in(const Plain& reasons) {
  std::uint64_t bits = 0;
  for (const Plain& reason : reasons)
    for (const ThrottleName& throttle : THROTTLES)
      if (reason.is_string() && reason.get_ref<const std::string&>() == throttle.name)
        bits |= static_cast<std::uint64_t>(throttle.reason);
  return bits;
}

std::vector<GpuProcess> processes_in(const Plain& list) {
  std::vector<GpuProcess> processes;
  for (const Plain& one : list) {
    if (processes.size() == MOST_PROCESSES) break;
    if (!one.is_object()) continue;
    auto pid = number_in(one, "pid", std::numeric_limits<std::uint32_t>::max());
    if (!pid) continue;
    GpuProcess& process = processes.emplace_back();
    process.pid = static_cast<std::uint32_t>(*pid);
    if (auto memory = number_in(one, "memory", 1e15))
      process.memory = static_cast<std::uint64_t>(*memory);
  }
  return processes;
}

}  // namespace

GpuSample sample_in(const Line& line) {
  GpuSample sample;
  sample.ts = line.ts;
  auto json = Plain::parse(line.text, nullptr, false);
  if (!json.is_object()) return sample;
  if (auto device = number_in(json, "device", std::numeric_limits<std::uint32_t>::max()))
    sample.device = static_cast<std::uint32_t>(*device);
  if (auto window = number_in(json, "window_ms", LONGEST_MS))
    sample.window_ns = static_cast<std::uint64_t>(std::llround(*window * NS_IN_MS));
#define GPU_FIGURE(key, unit, decimals, most, title) sample.key = number_in(json, #key, most);
#include "cudabpf/gpu_figures.def"
#undef GPU_FIGURE
  if (auto reasons = json.find("throttle"); reasons != json.end() && reasons->is_array())
    sample.throttle = throttle_in(*reasons);
  if (auto list = json.find("processes"); list != json.end() && list->is_array())
    sample.processes = processes_in(*list);
  return sample;
}

}  // namespace cudabpf::analyze
