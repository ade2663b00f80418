// A libnvidia-ml.so.1 without a GPU. README.md says how to control it.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

// --- as nvml.h has them

using nvmlReturn_t = int;
using nvmlDevice_t = struct nvmlDevice_st*;
constexpr nvmlReturn_t SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7,
                       LOST = 15, UNKNOWN = 999;

struct nvmlGpmSample_t {
  struct nvmlGpmSample_st* handle;
};
struct nvmlGpmMetric_t {
  unsigned int metricId;
  nvmlReturn_t nvmlReturn;
  double value;
  struct {
    char* shortName;
    char* longName;
    char* unit;
  } metricInfo;
};
struct nvmlGpmMetricsGet_t {
  unsigned int version;
  unsigned int numMetrics;
  nvmlGpmSample_t sample1;
  nvmlGpmSample_t sample2;
  nvmlGpmMetric_t metrics[333];
};
struct nvmlGpmSupport_t {
  unsigned int version;
  unsigned int isSupportedDevice;
};
struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};
struct nvmlFieldValue_t {
  unsigned int fieldId;
  unsigned int scopeId;
  long long timestamp;
  long long latencyUsec;
  unsigned int valueType;
  nvmlReturn_t nvmlReturn;
  union {
    double dVal;
    unsigned int uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    signed long long sllVal;
  } value;
};
struct nvmlMemory_t {
  unsigned long long total, free, used;
};
struct nvmlMemory_v2_t {
  unsigned int version;
  unsigned long long total, reserved, free, used;
};
struct nvmlUtilization_t {
  unsigned int gpu, memory;
};
struct nvmlProcessInfo_t {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId, computeInstanceId;
};

// --- what it returns

struct nvmlDevice_st {
  unsigned index;
};
struct nvmlGpmSample_st {
  unsigned device = 0;
  unsigned long taken = 0;  // which of all samples of its GPU; 0: none
};

namespace {

std::string setting(const char* name) {
  const char* value = std::getenv((std::string("FAKE_NVML_") + name).c_str());
  return value ? value : "";
}

class State {
 public:
  // The result of one more call of this reading, and how many there were.
  std::pair<nvmlReturn_t, unsigned long> call(const std::string& what, unsigned device) {
    std::lock_guard lock(mutex_);
    unsigned long number = ++calls_[{what, device}];
    all_++;
    if (!device_.empty()) request_from_driver();
    if (hangs_ == what && number > 1)
      for (;;) pause();
    if (lost_ && device == 0 && all_ >= lost_) return {LOST, number};
    if (lacks_.contains(what)) return {NOT_SUPPORTED, number};
    if (what == fails_ && number >= fails_from_) return {UNKNOWN, number};
    return {SUCCESS, number};
  }
  void record(const std::string& what, unsigned device, const std::string& value) {
    if (!record_) return;
    std::lock_guard lock(mutex_);
    std::fprintf(record_, "%s\t%u\t%s\n", what.c_str(), device, value.c_str());
    std::fflush(record_);
  }

  State() {
    std::string lacks = setting("LACKS");
    for (std::size_t from = 0; from < lacks.size();) {
      std::size_t to = std::min(lacks.find(',', from), lacks.size());
      lacks_.insert(lacks.substr(from, to - from));
      from = to + 1;
    }
    std::string fails = setting("FAILS");
    if (std::size_t colon = fails.find(':'); colon != std::string::npos) {
      fails_ = fails.substr(0, colon);
      fails_from_ = std::strtoul(fails.c_str() + colon + 1, nullptr, 10);
    }
    lost_ = std::strtoul(setting("LOST").c_str(), nullptr, 10);
    device_ = setting("ASKS");
    hangs_ = setting("HANGS");
    if (std::string path = setting("RECORD"); !path.empty())
      record_ = std::fopen(path.c_str(), "a");
  }

 private:
  // As the real one requests from the driver whatever it returns.
  void request_from_driver() const {
    int device = ::open(device_.c_str(), O_RDWR | O_CLOEXEC);
    if (device < 0) return;
    ::ioctl(device, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2a, 32), nullptr);
    ::close(device);
  }

  std::mutex mutex_;
  std::map<std::pair<std::string, unsigned>, unsigned long> calls_;
  unsigned long all_ = 0, lost_ = 0, fails_from_ = 0;
  std::set<std::string> lacks_;
  std::string fails_, hangs_, device_;
  FILE* record_ = nullptr;
};

State& state() {
  static State state;
  return state;
}

unsigned gpus() {
  std::string count = setting("GPUS");
  return count.empty() ? 1 : static_cast<unsigned>(std::strtoul(count.c_str(), nullptr, 10));
}

// One more reading of a whole number, which the call's number makes.
template <typename Number, typename Make>
nvmlReturn_t read_number(const char* what, nvmlDevice_t device, Number* to, Make make) {
  if (!device || !to) return INVALID;
  auto [result, number] = state().call(what, device->index);
  if (result != SUCCESS) return result;
  *to = static_cast<Number>(make(number));
  state().record(what, device->index, std::to_string(*to));
  return SUCCESS;
}

nvmlReturn_t put(const std::string& text, char* to, unsigned size) {
  if (text.size() >= size) return INSUFFICIENT_SIZE;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return SUCCESS;
}

double metric(unsigned id, unsigned long number) {
  std::string odd = setting("ODD");
  if (odd == "nan") return std::nan("");
  if (odd == "negative") return -1;
  if (odd == "huge") return 1e300;
  return static_cast<double>((number * 7 + id) % 100) + 0.5;
}

}  // namespace

EXPORT nvmlReturn_t nvmlInit_v2() {
  if (setting("HANGS") == "init")
    for (;;) pause();
  return std::atoi(setting("INIT").c_str());
}
EXPORT nvmlReturn_t nvmlShutdown() {
  state().record("shutdown", 0, "");
  return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  *count = gpus();
  return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  static nvmlDevice_st devices[64];
  if (index >= gpus()) return INVALID;
  devices[index].index = index;
  *device = &devices[index];
  return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* text, unsigned size) {
  return put("GPU-5a1e0000-" + std::to_string(device->index), text, size);
}
EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t, char* text, unsigned size) {
  return put("Simulated H100", text, size);
}
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* info) {
  *info = {};
  info->bus = 0x3b + device->index;
  std::snprintf(info->busId, sizeof(info->busId), "00000000:%02X:00.0", info->bus);
  return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count,
                                             nvmlFieldValue_t* values) {
  for (int i = 0; i < count; i++) {
    nvmlFieldValue_t& value = values[i];
    value.valueType = 1;  // unsigned int
    value.nvmlReturn =
        value.fieldId == 186
            ? read_number("instant", device, &value.value.uiVal,
                          [](unsigned long number) { return 700'000 + 100 * number; })
            : NOT_SUPPORTED;
  }
  return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned* milliwatts) {
  return read_number("average", device, milliwatts,
                     [](unsigned long number) { return 600'000 + 100 * number; });
}
EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t, unsigned* milliwatts) {
  *milliwatts = 1'000'000;
  return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                        unsigned long long* millijoules) {
  return read_number("energy", device, millijoules, [](unsigned long number) {
    std::string back = setting("BACK");
    if (!back.empty() && number >= std::strtoul(back.c_str(), nullptr, 10)) return 5 * number;
    return 9'000'000'000'000ul + 700'123 * number;
  });
}
EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int kind, unsigned* mhz) {
  if (kind == 1)
    return read_number("sm_clock", device, mhz,
                       [](unsigned long number) { return 1000 + number % 900; });
  if (kind == 2)
    return read_number("mem_clock", device, mhz,
                       [](unsigned long number) { return 2000 + number % 900; });
  return INVALID;
}
EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                           unsigned long long* reasons) {
  return read_number("throttle", device, reasons,
                     [](unsigned long number) { return number % 0x200; });
}
EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned* celsius) {
  if (sensor != 0) return INVALID;
  return read_number("temperature", device, celsius,
                     [](unsigned long number) { return 30 + number % 50; });
}
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  if (memory->version != (sizeof(nvmlMemory_v2_t) | 2u << 24)) return INVALID;
  memory->total = 80ull << 30;
  memory->reserved = 600 << 20;
  return read_number("memory", device, &memory->used,
                     [](unsigned long number) { return (number << 30) + 1; });
}
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t* memory) {
  *memory = {.total = 80ull << 30, .free = 80ull << 30, .used = 0};
  return SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* rates) {
  rates->memory = 12;
  return read_number("utilization", device, &rates->gpu,
                     [](unsigned long number) { return number % 101; });
}
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                            nvmlProcessInfo_t* infos) {
  auto [result, number] = state().call("processes", device->index);
  if (result != SUCCESS) return result;
  std::string pids = setting("PIDS");
  unsigned found = 0;
  for (std::size_t from = 0; from < pids.size();) {
    if (found == *count) return INSUFFICIENT_SIZE;
    std::size_t to = std::min(pids.find(',', from), pids.size());
    infos[found] = {static_cast<unsigned>(std::strtoul(pids.c_str() + from, nullptr, 10)),
                    found ? ~0ull : number << 20, ~0u, ~0u};
    found++;
    from = to + 1;
  }
  *count = found;
  state().record("processes", device->index, std::to_string(number << 20));
  return SUCCESS;
}
EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t* support) {
  if (support->version != 1) return INVALID;
  support->isSupportedDevice = state().call("gpm", device->index).first == SUCCESS;
  return SUCCESS;
}
EXPORT nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t* sample) {
  sample->handle = new nvmlGpmSample_st;
  return SUCCESS;
}
EXPORT nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
  delete sample.handle;
  return SUCCESS;
}
EXPORT nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
  auto [result, number] = state().call("activity", device->index);
  sample.handle->device = device->index;
  sample.handle->taken = number;
  return result;
}
EXPORT nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t* get) {
  if (get->version != 1 || get->numMetrics > 333) return INVALID;
  const nvmlGpmSample_st &first = *get->sample1.handle, &second = *get->sample2.handle;
  if (!first.taken || second.taken <= first.taken) return INVALID;
  for (unsigned i = 0; i < get->numMetrics; i++) {
    nvmlGpmMetric_t& metric = get->metrics[i];
    bool nvlink = metric.metricId >= 60;
    metric.nvmlReturn = nvlink ? NOT_SUPPORTED : SUCCESS;
    metric.value = ::metric(metric.metricId, second.taken);
    metric.metricInfo = {};
    if (!nvlink)
      state().record("metric" + std::to_string(metric.metricId), second.device,
                     std::to_string(metric.value));
  }
  return SUCCESS;
}
