#include "collect/gpu/gpu_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace cudabpf {

namespace {

using nvml::Return;

constexpr std::string_view READING_NAMES[] = {"power",    "sm_clock",    "mem_clock", "throttle",
                                              "activity", "utilization", "energy",    "temperature",
                                              "memory",   "processes"};

// The largest valid figures.
namespace limit {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name cannot stand in parentheses
#define GPU_FIGURE(key, unit, decimals, at_most, title) constexpr double key = (at_most);
#include "cudabpf/gpu_figures.def"
#undef GPU_FIGURE
}  // namespace limit

constexpr double PERCENT = 1, MIB = 1024 * 1024, MILLI = 1e-3;

// Text that NVML has put into a buffer.
template <std::size_t N>
std::string text_in(const char (&buffer)[N]) {
  return {buffer, std::find(buffer, buffer + N, '\0')};
}

}  // namespace

Result<std::unique_ptr<GpuReader>> GpuReader::open(const nvml::Functions& nvml, unsigned index) {
  nvml::Device device = nullptr;
  if (Return result = nvml.handle(index, &device); result != Return::success)
    return Error{
        fmt::format("NVML does not give GPU {} (error {})", index, static_cast<int>(result))};
  std::unique_ptr<GpuReader> reader(new GpuReader(nvml, device));
  reader->describe(index);
  reader->choose_activity();
  reader->try_all();
  if (reader->lost_) return Error{fmt::format("GPU {} is lost", index)};
  return reader;
}

GpuReader::~GpuReader() {
  for (nvml::GpmSample sample : counters_)
    if (sample && nvml_.gpm_free) nvml_.gpm_free(sample);
}

void GpuReader::describe(unsigned index) {
  gpu_.device = index;
  char text[96] = {};
  constexpr unsigned SIZE = sizeof(text);
  if (nvml_.name && nvml_.name(device_, text, SIZE) == Return::success) gpu_.name = text_in(text);
  if (nvml_.uuid && nvml_.uuid(device_, text, SIZE) == Return::success) gpu_.uuid = text_in(text);
  nvml::PciInfo pci{};
  if (nvml_.pci_info && nvml_.pci_info(device_, &pci) == Return::success)
    gpu_.bus_id = text_in(pci.bus_id);
  nvml::Memory memory{};
  if (nvml_.memory && nvml_.memory(device_, &memory) == Return::success)
    gpu_.memory = static_cast<double>(memory.total);
  constexpr double MILLIWATTS = 1000;
  unsigned limit = 0;
  if (nvml_.power_limit && nvml_.power_limit(device_, &limit) == Return::success)
    gpu_.power_limit = limit / MILLIWATTS;
}

// The GPU's performance counters (GPM, from Hopper on) are exact; the utilization that the driver
// keeps otherwise is the share of the time in which anything ran at all.
void GpuReader::choose_activity() {
  auto reject = [this](std::string why) { gpu_.why = std::move(why); };
  if (!nvml_.gpm_support || !nvml_.gpm_alloc || !nvml_.gpm_free || !nvml_.gpm_get ||
      !nvml_.gpm_metrics)
    return reject("this driver has no GPM");
  nvml::GpmSupport support{nvml::GPM_SUPPORT_V1, 0};
  if (nvml_.gpm_support(device_, &support) != Return::success || !support.supported)
    return reject("this GPU has no GPM");
  for (nvml::GpmSample& sample : counters_)
    if (nvml_.gpm_alloc(&sample) != Return::success) sample = nullptr;
  if (!counters_[0] || !counters_[1]) return reject("NVML has no memory for GPM's samples");
  if (Return result = nvml_.gpm_get(device_, counters_[0]); result != Return::success)
    return reject(result == Return::no_permission
                      ? "this user may not read GPM"
                      : fmt::format("GPM cannot be read (error {})", static_cast<int>(result)));
  gpu_.activity = "gpm";
#define METRIC(id, key, scale) {id, #key, &GpuSample::key, scale, limit::key}
  metrics_ = {METRIC(2, sm_active, PERCENT),     METRIC(3, sm_occupancy, PERCENT),
              METRIC(5, tensor_active, PERCENT), METRIC(10, dram_active, PERCENT),
              METRIC(20, pcie_tx, MIB),          METRIC(21, pcie_rx, MIB),
              METRIC(60, nvlink_rx, MIB),        METRIC(61, nvlink_tx, MIB)};
#undef METRIC
  metrics_get_ = std::make_unique<nvml::GpmMetricsGet>();
  try_metrics();
}

// Two readings of the counters so close to each other give no figures, but GPM says which figures
// it lacks.
void GpuReader::try_metrics() {
  if (nvml_.gpm_get(device_, counters_[1]) != Return::success || get_metrics() != Return::success)
    return;
  std::vector<Metric> known;
  for (std::size_t i = 0; i < metrics_.size(); i++) {
    Return result = metrics_get_->metrics[i].result;
    if (result == Return::not_supported || result == Return::function_not_found)
      gpu_.lacks.emplace_back(metrics_[i].name);
    else
      known.push_back(metrics_[i]);
  }
  metrics_ = std::move(known);
}

// A reading that fails here is unknown to this GPU or its driver, and is not tried again.
void GpuReader::try_all() {
  lacks_[static_cast<std::size_t>(Reading::activity)] = gpu_.activity.empty();
  lacks_[static_cast<std::size_t>(Reading::utilization)] = !gpu_.activity.empty();
  instant_power_ = nvml_.field_values != nullptr;
  trying_ = true;
  read(0, {.activity = true, .slow = true, .energy = true});
  if (!wants(Reading::power) && instant_power_) {
    instant_power_ = false;
    lacks_.reset(static_cast<std::size_t>(Reading::power));
    GpuSample ignored;
    read_power(ignored);
  }
  trying_ = false;
  counted_ = false;
  if (wants(Reading::power)) gpu_.power = instant_power_ ? "instant" : "average";
  if (gpu_.activity.empty()) gpu_.activity = wants(Reading::utilization) ? "utilization" : "none";
  for (std::size_t i = 0; i < READINGS; i++) {
    auto reading = static_cast<Reading>(i);
    if (lacks_[i] && reading != Reading::activity && reading != Reading::utilization)
      gpu_.lacks.emplace_back(READING_NAMES[i]);
  }
}

GpuSample GpuReader::read(std::uint64_t ts, What what) {
  GpuSample sample;
  sample.ts = ts;
  sample.device = gpu_.device;
  if (what.activity) read_activity(sample);
  if (what.energy) read_energy(sample);
  read_power(sample);
  if (what.activity) read_utilization(sample);
  if (what.slow) read_slow(sample);
  return sample;
}

GpuReader::Failures GpuReader::take_failures() { return std::exchange(failures_, {}); }

bool GpuReader::succeeded(Reading reading, Return result) {
  if (result == Return::success) return true;
  auto number = static_cast<std::size_t>(reading);
  if (trying_) lacks_.set(number);
  if (result == Return::gpu_is_lost && !lost_) {
    lost_ = true;
    lacks_.set();
    failed(fmt::format("GPU {} is lost", gpu_.device));
  } else if (!lost_) {
    failed(fmt::format("GPU {}: {} could not be read (error {})", gpu_.device,
                       READING_NAMES[number], static_cast<int>(result)));
  }
  return false;
}

void GpuReader::failed(std::string what) {
  if (trying_) return;
  failures_.count++;
  failures_.last = std::move(what);
}

// NVML says NaN where it has no figure. A value that no GPU can have is no figure either.
void GpuReader::set(std::optional<double>& figure, double value, double most,
                    std::string_view name) {
  if (std::isnan(value)) return;
  if (value >= 0 && value <= most)
    figure = value;
  else
    failed(fmt::format("GPU {}: NVML's {} cannot be", gpu_.device, name));
}

void GpuReader::read_power(GpuSample& to) {
  if (!wants(Reading::power)) return;
  if (!instant_power_) {
    unsigned milliwatts = 0;
    Return result =
        nvml_.power_usage ? nvml_.power_usage(device_, &milliwatts) : Return::function_not_found;
    if (succeeded(Reading::power, result))
      set(to.power_w, milliwatts * MILLI, limit::power_w, "power");
    return;
  }
  nvml::FieldValue value{};
  value.field = nvml::FieldId::power_instant;
  Return result = nvml_.field_values(device_, 1, &value);
  if (result == Return::success) result = value.result;
  if (!succeeded(Reading::power, result)) return;
  double milliwatts =
      value.kind == nvml::ValueKind::unsigned_int ? static_cast<double>(value.value.unsigned_int)
      : value.kind == nvml::ValueKind::real       ? value.value.real
                                                  : static_cast<double>(value.value.whole);
  set(to.power_w, milliwatts * MILLI, limit::power_w, "power");
}

void GpuReader::read_clocks(GpuSample& to) {
  auto read = [this](Reading reading, nvml::ClockKind kind, std::optional<double>& figure,
                     double at_most) {
    if (!wants(reading)) return;
    unsigned mhz = 0;
    if (succeeded(reading,
                  nvml_.clock ? nvml_.clock(device_, kind, &mhz) : Return::function_not_found))
      set(figure, mhz, at_most, "clock");
  };
  read(Reading::sm_clock, nvml::ClockKind::sm, to.sm_clock_mhz, limit::sm_clock_mhz);
  read(Reading::mem_clock, nvml::ClockKind::memory, to.mem_clock_mhz, limit::mem_clock_mhz);
}

void GpuReader::read_throttle(GpuSample& to) {
  if (!wants(Reading::throttle)) return;
  auto* read = nvml_.event_reasons ? nvml_.event_reasons : nvml_.throttle_reasons;
  unsigned long long reasons = 0;
  if (succeeded(Reading::throttle, read ? read(device_, &reasons) : Return::function_not_found))
    to.throttle = reasons;
}

// Reads the counters; the figures are the differences from the previous ones.
void GpuReader::read_activity(GpuSample& to) {
  if (!wants(Reading::activity)) return;
  if (!succeeded(Reading::activity, nvml_.gpm_get(device_, counters_[1]))) return;
  if (counted_) read_metrics(to);
  std::swap(counters_[0], counters_[1]);
  counted_ = true;
  counted_at_ = to.ts;
}

Return GpuReader::get_metrics() {
  nvml::GpmMetricsGet& get = *metrics_get_;
  get = {};
  get.version = nvml::GPM_METRICS_GET_V1;
  get.count = static_cast<unsigned>(metrics_.size());
  get.first = counters_[0];
  get.second = counters_[1];
  for (std::size_t i = 0; i < metrics_.size(); i++) get.metrics[i].id = metrics_[i].id;
  return nvml_.gpm_metrics(&get);
}

// Figures that the first whole window lacks are unknown to this GPU.
void GpuReader::read_metrics(GpuSample& to) {
  if (!succeeded(Reading::activity, get_metrics())) return;
  to.window_ns = to.ts - counted_at_;
  std::vector<Metric> known;
  for (std::size_t i = 0; i < metrics_.size(); i++) {
    const Metric& metric = metrics_[i];
    const nvml::GpmMetric& got = metrics_get_->metrics[i];
    bool has_value = got.result == Return::success;
    if (has_value)
      set(to.*metric.figure, got.value * metric.scale, metric.most, metric.name);
    else if (metrics_known_)
      succeeded(Reading::activity, got.result);
    if (has_value || metrics_known_) known.push_back(metric);
  }
  metrics_known_ = true;
  metrics_ = std::move(known);
}

void GpuReader::read_utilization(GpuSample& to) {
  if (!wants(Reading::utilization)) return;
  nvml::Utilization rates{};
  if (!succeeded(Reading::utilization, nvml_.utilization ? nvml_.utilization(device_, &rates)
                                                         : Return::function_not_found))
    return;
  set(to.utilization, rates.gpu, limit::utilization, "utilization");
  set(to.memory_utilization, rates.memory, limit::memory_utilization, "utilization");
}

void GpuReader::read_energy(GpuSample& to) {
  if (!wants(Reading::energy)) return;
  unsigned long long millijoules = 0;
  if (succeeded(Reading::energy,
                nvml_.energy ? nvml_.energy(device_, &millijoules) : Return::function_not_found))
    set(to.energy_j, static_cast<double>(millijoules) * MILLI, limit::energy_j, "energy");
}

void GpuReader::read_slow(GpuSample& to) {
  if (wants(Reading::temperature)) {
    unsigned celsius = 0;
    if (succeeded(Reading::temperature,
                  nvml_.temperature ? nvml_.temperature(device_, nvml::TEMPERATURE_OF_GPU, &celsius)
                                    : Return::function_not_found))
      set(to.temperature_c, celsius, limit::temperature_c, "temperature");
  }
  read_clocks(to);
  read_throttle(to);
  read_memory(to);
  read_processes(to);
}

// The newer function leaves out the memory that the driver reserves for itself.
void GpuReader::read_memory(GpuSample& to) {
  if (!wants(Reading::memory)) return;
  nvml::MemoryV2 newer{.version = nvml::MEMORY_V2, .total = 0, .reserved = 0, .free = 0, .used = 0};
  nvml::Memory older{};
  Return result = nvml_.memory_v2 ? nvml_.memory_v2(device_, &newer)
                  : nvml_.memory  ? nvml_.memory(device_, &older)
                                  : Return::function_not_found;
  if (!succeeded(Reading::memory, result)) return;
  auto used = nvml_.memory_v2 ? newer.used : older.used;
  set(to.memory_used, static_cast<double>(used), limit::memory_used, "memory");
}

void GpuReader::read_processes(GpuSample& to) {
  if (!wants(Reading::processes)) return;
  std::array<nvml::ProcessInfo, 256> infos{};
  auto count = static_cast<unsigned>(infos.size());
  if (!succeeded(Reading::processes, nvml_.processes
                                         ? nvml_.processes(device_, &count, infos.data())
                                         : Return::function_not_found))
    return;
  to.processes.emplace();
  for (std::size_t i = 0; i < std::min<std::size_t>(count, infos.size()); i++) {
    GpuProcess& process = to.processes->emplace_back();
    process.pid = infos[i].pid;
    if (static_cast<double>(infos[i].memory) <= limit::memory_used)
      process.memory = infos[i].memory;
  }
}

}  // namespace cudabpf
