#include "analyze/derived/gpu_samples.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "util/text/json_text.hpp"

namespace cudabpf::analyze {

namespace {

using Plain = nlohmann::json;

constexpr double NS_IN_MS = 1e6;
// No window that cudabpf takes is longer.
constexpr double MAX_MS = 24 * 3600 * 1e3;
constexpr std::size_t MAX_PROCESSES = 1024;

std::optional<double> reading_in(const Plain& object, const char* key, double most) {
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
    if (processes.size() == MAX_PROCESSES) break;
    if (!one.is_object()) continue;
    auto pid = reading_in(one, "pid", std::numeric_limits<std::uint32_t>::max());
    if (!pid) continue;
    GpuProcess& process = processes.emplace_back();
    process.pid = static_cast<std::uint32_t>(*pid);
    if (auto memory = reading_in(one, "memory", 1e15))
      process.memory = static_cast<std::uint64_t>(*memory);
  }
  return processes;
}

std::uint64_t nanoseconds(double milliseconds) {
  return static_cast<std::uint64_t>(std::llround(milliseconds * NS_IN_MS));
}

// No process can have had the GPU for longer than the time that is covered.
std::optional<GpuResidents> residents_in(const Plain& json, const Plain& list) {
  auto time_in = [&](const char* key) { return integer_in(json, key).value_or(-1); };
  std::int64_t from = time_in("resident_from"), to = time_in("resident_to");
  if (from < 0 || to <= from || static_cast<double>(to - from) > MAX_MS * NS_IN_MS)
    return std::nullopt;
  GpuResidents residents;
  residents.from = static_cast<std::uint64_t>(from);
  residents.to = static_cast<std::uint64_t>(to);
  std::uint64_t rest = residents.to - residents.from;
  auto taken = [&](const Plain& object, const char* key) {
    std::uint64_t ns = nanoseconds(reading_in(object, key, MAX_MS).value_or(0));
    rest -= ns = std::min(ns, rest);
    return ns;
  };
  residents.unknown_ns = taken(json, "resident_unknown_ms");
  for (const Plain& one : list) {
    if (residents.processes.size() == MAX_PROCESSES) break;
    if (!one.is_object()) continue;
    auto pid = reading_in(one, "pid", std::numeric_limits<std::uint32_t>::max());
    residents.processes.push_back({static_cast<std::uint32_t>(pid.value_or(0)), taken(one, "ms")});
  }
  return residents;
}

}  // namespace

GpuSample sample_in(const Line& line) {
  GpuSample sample;
  sample.ts = line.ts;
  auto json = parsed(line.text);
  if (!json.is_object()) return sample;
  if (auto device = reading_in(json, "gpu", std::numeric_limits<std::uint32_t>::max()))
    sample.device = static_cast<std::uint32_t>(*device);
  if (auto window = reading_in(json, "window_ms", MAX_MS)) sample.window_ns = nanoseconds(*window);
#define GPU_FIGURE(key, unit, decimals, most, title) sample.key = reading_in(json, #key, most);
#include "cudabpf/gpu_figures.def"
#undef GPU_FIGURE
  if (auto reasons = json.find("throttle"); reasons != json.end() && reasons->is_array())
    sample.throttle = throttle_in(*reasons);
  if (auto list = json.find("processes"); list != json.end() && list->is_array())
    sample.processes = processes_in(*list);
  if (auto list = json.find("residents"); list != json.end() && list->is_array())
    sample.residents = residents_in(json, *list);
  return sample;
}

}  // namespace cudabpf::analyze
