// What cudabpf uses of NVML, the driver's library that reports the state of GPUs. It is opened at
// run time, so its types are declared here, as nvml.h of NVML 11.4 to 13 has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "util/result.hpp"

namespace cudabpf::nvml {

enum class Return : int {
  success = 0,
  not_supported = 3,
  no_permission = 4,
  insufficient_size = 7,
  driver_not_loaded = 9,
  function_not_found = 13,
  gpu_is_lost = 15,
};

using Device = struct DeviceState*;
using GpmSample = struct GpmSampleState*;

enum class ClockKind : int { sm = 1, memory = 2 };

constexpr unsigned TEMPERATURE_OF_GPU = 0;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

enum class FieldId : unsigned { power_average = 185, power_instant = 186 };
enum class ValueKind : int { real, unsigned_int, unsigned_long, unsigned_long_long };

struct FieldValue {
  FieldId field;
  unsigned scope;
  long long timestamp;
  long long latency_us;
  ValueKind kind;
  Return result;
  union {
    double real;
    unsigned unsigned_int;
    unsigned long long whole;
  } value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, kind) == 24);

struct Memory {
  unsigned long long total, free, used;
};

struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40);
constexpr unsigned MEMORY_V2 = sizeof(MemoryV2) | 2 << 24;

struct Utilization {
  unsigned gpu, memory;  // percent
};

struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);
constexpr unsigned long long NOT_AVAILABLE = ~0ull;  // a process's memory

struct GpmSupport {
  unsigned version;
  unsigned supported;
};
constexpr unsigned GPM_SUPPORT_V1 = 1;

struct GpmMetric {
  unsigned id;
  Return result;
  double value;
  char *short_name, *long_name, *unit;
};
static_assert(sizeof(GpmMetric) == 40);

// How many metrics there are differs with the version; only the first `count` are touched. The
// array is as long as the longest known, for a library that clears all of it.
struct GpmMetricsGet {
  unsigned version;
  unsigned count;
  GpmSample first, second;
  std::array<GpmMetric, 512> metrics;
};
static_assert(offsetof(GpmMetricsGet, metrics) == 24);
constexpr unsigned GPM_METRICS_GET_V1 = 1;

struct Functions {
// A declaration's parts cannot stand in parentheses.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define NVML_FUNCTION(member, name, parameters) Return(*member) parameters = nullptr;
#include "collect/gpu/nvml_functions.def"
#undef NVML_FUNCTION
};

// Opens the machine's libnvidia-ml.so.1, for good. An error says what is missing.
cudabpf::Result<Functions> load();

}  // namespace cudabpf::nvml
