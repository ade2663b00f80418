// NVML as a test wants it: functions that report what `script` says, and count how often they are
// called.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "collect/gpu/nvml.hpp"

namespace samples {

struct NvmlScript {
  unsigned gpus = 1;
  cudabpf::nvml::Return init = cudabpf::nvml::Return::success;
  bool gpm = true;
  std::map<std::string, cudabpf::nvml::Return> results{};  // others succeed
  std::map<unsigned, double> metrics{{1, 99.9},  {2, 96.4}, {3, 14.3}, {5, 93.6},
                                     {10, 16.3}, {20, 1},   {21, 2}};  // others are not supported
  unsigned milliwatts = 704'100;
  unsigned long long millijoules = 12'345'678;
  unsigned long long throttle = 0x4 | 0x1;
  unsigned long long memory = 80ull << 30;
  std::vector<cudabpf::nvml::ProcessInfo> processes{{4242, 1 << 20, 0, 0}};
  unsigned more_processes = 0;  // than fit, as it says
  cudabpf::nvml::ValueKind power_kind = cudabpf::nvml::ValueKind::unsigned_int;

  std::map<std::string, unsigned> requests{};
  int gpm_samples = 0;  // allocated and not freed
  int running = 0;      // init less shutdown
};

inline NvmlScript script;  // what all GPUs report

inline cudabpf::nvml::Return count_request(const char* what) {
  script.requests[what]++;
  auto found = script.results.find(what);
  return found == script.results.end() ? cudabpf::nvml::Return::success : found->second;
}

template <typename Value, typename From>
cudabpf::nvml::Return answer(const char* what, Value* to, From value) {
  auto result = count_request(what);
  if (result == cudabpf::nvml::Return::success) *to = static_cast<Value>(value);
  return result;
}

inline cudabpf::nvml::Return scripted_metrics(cudabpf::nvml::GpmMetricsGet* get) {
  using cudabpf::nvml::Return;
  if (get->version != 1 || get->first == get->second) return static_cast<Return>(2);
  for (unsigned i = 0; i < get->count; i++) {
    auto& metric = get->metrics[i];
    auto found = script.metrics.find(metric.id);
    metric.result = found == script.metrics.end() ? Return::not_supported : Return::success;
    if (found != script.metrics.end()) metric.value = found->second;
  }
  return count_request("metrics");
}

inline void add_readings(cudabpf::nvml::Functions& nvml) {
  using namespace cudabpf::nvml;
  nvml.field_values = [](Device, int count, FieldValue* values) {
    if (count != 1 || values->field != FieldId::power_instant) return static_cast<Return>(2);
    values->result = count_request("instant");
    values->kind = script.power_kind;
    if (script.power_kind == ValueKind::real)
      values->value.real = script.milliwatts;
    else
      values->value.whole = script.milliwatts;
    return Return::success;
  };
  nvml.power_usage = [](Device, unsigned* to) { return answer("average", to, 600'000); };
  nvml.energy = [](Device, unsigned long long* to) {
    return answer("energy", to, script.millijoules);
  };
  nvml.clock = [](Device, ClockKind kind, unsigned* to) {
    return answer("clock", to, kind == ClockKind::sm ? 1755 : 2619);
  };
  nvml.event_reasons = [](Device, unsigned long long* to) {
    return answer("throttle", to, script.throttle);
  };
  nvml.temperature = [](Device, unsigned, unsigned* to) { return answer("temperature", to, 61); };
  nvml.memory_v2 = [](Device, MemoryV2* to) {
    return to->version == MEMORY_V2 ? answer("memory", &to->used, script.memory)
                                    : static_cast<Return>(2);
  };
  nvml.utilization = [](Device, Utilization* to) {
    *to = {87, 12};
    return count_request("utilization");
  };
  nvml.processes = [](Device, unsigned* count, ProcessInfo* to) {
    for (std::size_t i = 0; i < script.processes.size() && i < *count; i++)
      to[i] = script.processes[i];
    *count = static_cast<unsigned>(script.processes.size()) + script.more_processes;
    return count_request("processes");
  };
}

inline cudabpf::nvml::Functions scripted_nvml() {
  using namespace cudabpf::nvml;
  Functions nvml;
  nvml.init = [] {
    script.running += script.init == Return::success;
    return script.init;
  };
  nvml.shutdown = [] {
    script.running--;
    return Return::success;
  };
  nvml.count = [](unsigned* to) { return answer("count", to, script.gpus); };
  nvml.handle = [](unsigned index, Device* to) {
    *to = reinterpret_cast<Device>(std::uintptr_t{index} + 1);
    return count_request("handle");
  };
  nvml.uuid = [](Device, char* text, unsigned size) {
    std::strncpy(text, "GPU-1", size);
    return Return::success;
  };
  nvml.name = [](Device, char* text, unsigned size) {
    std::memset(text, 'x', size);  // without an end
    return Return::success;
  };
  nvml.pci_info = [](Device, PciInfo* info) {
    std::strcpy(info->bus_id, "00000000:3B:00.0");
    return Return::success;
  };
  add_readings(nvml);
  nvml.gpm_support = [](Device, GpmSupport* to) {
    to->supported = script.gpm;
    return Return::success;
  };
  nvml.gpm_alloc = [](GpmSample* to) {
    *to = reinterpret_cast<GpmSample>(new int(0));
    script.gpm_samples++;
    return Return::success;
  };
  nvml.gpm_free = [](GpmSample sample) {
    delete reinterpret_cast<int*>(sample);
    script.gpm_samples--;
    return Return::success;
  };
  nvml.gpm_get = [](Device, GpmSample) { return count_request("activity"); };
  nvml.gpm_metrics = scripted_metrics;
  return nvml;
}

}  // namespace samples
