#include "replay/timing/power_meter.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace cudabpf::replay {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds LONGEST_WARM_UP{500};  // power follows work within a fraction of a second
constexpr milliseconds LONGEST_STEP{2000};

struct PciAddress {
  unsigned domain = 0, bus = 0, device = 0;
  bool operator==(const PciAddress&) const = default;
};

Result<PciAddress> address_of(const Driver& driver, int device) {
  constexpr int BUS = 33, DEVICE = 34, DOMAIN = 50;  // CUdevice_attributes
  int domain = 0, bus = 0, slot = 0;
  TRY(driver.device_attribute(&domain, DOMAIN, device));
  TRY(driver.device_attribute(&bus, BUS, device));
  TRY(driver.device_attribute(&slot, DEVICE, device));
  return PciAddress{static_cast<unsigned>(domain), static_cast<unsigned>(bus),
                    static_cast<unsigned>(slot)};
}

// "00000000:3B:00.0"
std::optional<PciAddress> address_in(const std::string& text) {
  PciAddress address;
  // NOLINTNEXTLINE(cert-err34-c): what cannot be read is a number that no GPU has
  if (std::sscanf(text.c_str(), "%x:%x:%x", &address.domain, &address.bus, &address.device) != 3)
    return std::nullopt;
  return address;
}

}  // namespace

Result<std::unique_ptr<PowerMeter>> PowerMeter::open(const Driver& driver, int device) {
  PciAddress wanted = TRY(address_of(driver, device));
  nvml::Functions nvml = TRY(nvml::load());
  if (nvml.init() != nvml::Return::success) return Error{"NVML could not be initialised"};
  std::unique_ptr<PowerMeter> meter(new PowerMeter(nvml));
  unsigned count = 0;
  if (nvml.count(&count) != nvml::Return::success) return Error{"NVML does not list GPUs"};
  for (unsigned i = 0; i < count; i++) {
    nvml::PciInfo pci{};
    nvml::Device one = nullptr;
    if (nvml.handle(i, &one) != nvml::Return::success || !nvml.pci_info ||
        nvml.pci_info(one, &pci) != nvml::Return::success)
      continue;
    if (address_in({pci.bus_id, strnlen(pci.bus_id, sizeof(pci.bus_id))}) != wanted) continue;
    meter->device_ = one;
    meter->reader_ = TRY(GpuReader::open(meter->nvml_, i));
    return meter;
  }
  return Error{"NVML does not list this GPU"};
}

PowerMeter::~PowerMeter() {
  reader_.reset();
  nvml_.shutdown();
}

std::optional<Clocks> PowerMeter::clocks() {
  GpuSample sample = reader_->read(0, {});
  if (!sample.sm_clock_mhz) return std::nullopt;
  return Clocks{static_cast<std::uint32_t>(std::lround(*sample.sm_clock_mhz)),
                sample.throttle.value_or(0)};
}

std::optional<std::uint64_t> PowerMeter::millijoules() {
  unsigned long long counter = 0;
  if (nvml_.energy && nvml_.energy(device_, &counter) == nvml::Return::success) return counter;
  fault_ = "this GPU has no energy counter";
  return std::nullopt;
}

Result<std::optional<std::uint64_t>> PowerMeter::next_step(const std::function<Result<>()>& work) {
  auto first = millijoules();
  for (auto begin = Clock::now(); first && Clock::now() - begin < LONGEST_STEP;) {
    TRY(work());
    auto now = millijoules();
    if (!now) break;
    if (*now > *first) return now;
    if (*now < *first) fault_ = "the energy counter went back";
    if (*now < *first) break;
  }
  if (fault_.empty()) fault_ = "the energy counter does not count";
  return std::optional<std::uint64_t>();
}

Result<std::optional<Energy>> PowerMeter::measure(const std::function<Result<>()>& work,
                                                  std::uint32_t window_ms, Progress& progress) {
  Energy energy;
  fault_.clear();
  std::function<Result<>()> counted = [&]() -> Result<> {
    progress.beat();
    energy.rounds++;
    return work();
  };
  milliseconds warm_up = std::min(LONGEST_WARM_UP, milliseconds(window_ms));
  for (auto begin = Clock::now(); Clock::now() - begin < warm_up;) TRY(counted());
  auto before = TRY(next_step(counted));
  auto begin = Clock::now();
  energy.rounds = 0;
  while (before && Clock::now() - begin < milliseconds(window_ms)) TRY(counted());
  auto after = before ? TRY(next_step(counted)) : std::nullopt;
  if (after && *after < *before) fault_ = "the energy counter went back";
  if (!after || !fault_.empty()) return std::optional<Energy>();
  std::chrono::nanoseconds window = Clock::now() - begin;
  energy.window_ns = static_cast<std::uint64_t>(window.count());
  energy.millijoules = *after - *before;
  return std::optional(energy);
}

}  // namespace cudabpf::replay
