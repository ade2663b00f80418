// What a capture does about the NVIDIA driver.
#include <algorithm>
#include <utility>

#include "collect/capture.hpp"
#include "collect/driver_functions.hpp"
#include "collect/machine.hpp"
#include "util/console/log.hpp"

namespace cudabpf {

namespace {

constexpr std::uint64_t LOOK_EVERY_NS = 100'000'000;

}  // namespace

Result<> Capture::attach_driver() {
  driver_modules_ = driver_modules();
  devices_ = nvidia_devices();
  probes_->driver().set_devices(devices_);
  probes_->driver().set_version(DriverVersion::parse(nvidia_driver().version));
  auto way = probes_->driver().attach(*features_);
  if (!way) return way.error();
  driver_way_ = *way;
  watch_gpu_errors();
  return ok();
}

// The driver's tracepoint tells when, the kernel's log whose process it was: either will do.
void Capture::watch_gpu_errors() {
  const auto& disabled = options_.disabled_features;
  bool off = std::find(disabled.begin(), disabled.end(), feature::XID_TRACEPOINT) != disabled.end();
  bool traced = !off && probes_->driver().attach_xid();
  if (kernel_log_) return;
  auto log = KernelLog::open();
  if (log)
    kernel_log_.emplace(std::move(*log));
  else if (!traced)
    log::hint("errors of GPUs are not seen: {}", log.error().message);
}

DriverDevice Capture::driver_device(std::uint32_t number) {
  std::lock_guard lock(devices_mutex_);
  return {devices_.node(number), devices_.name(number)};
}

void Capture::follow_driver() {
  // The main thread wakes at every mapping on the machine; modules load seldom.
  if (!options_.driver || now() - driver_seen_at_ < LOOK_EVERY_NS) return;
  std::uint64_t since = std::exchange(driver_seen_at_, now());
  driver_skipped_ = probes_->driver().skipped();
  if (DriverDevices renewed = nvidia_devices(); renewed != devices_) {
    std::lock_guard lock(devices_mutex_);
    devices_ = std::move(renewed);
    probes_->driver().set_devices(devices_);
  }
  std::vector<std::uint64_t> before = std::exchange(driver_modules_, driver_modules());
  bool loaded = false;
  for (std::size_t i = 0; i < before.size(); i++)
    loaded |= driver_modules_[i] != 0 && driver_modules_[i] != before[i];
  if (!loaded) return;
  privileges::Raised rights(needs());
  // Probes on functions go with their module; system calls stay.
  auto version = DriverVersion::parse(nvidia_driver().version);
  probes_->driver().set_version(version);
  std::string detail;
  if (driver_way_ != feature::SYSCALL_TRACEPOINTS) {
    probes_->driver().detach();
    if (auto way = probes_->driver().attach(*features_); way)
      driver_way_ = *way;
    else
      detail = "it is no longer traced: " + way.error().message;
  }
  watch_gpu_errors();
  note_loss({Loss::late_driver, std::nullopt, since, now(), std::move(detail)});
  std::lock_guard lock(notes_mutex_);
  noted_version_ = version;
}

void Capture::read_gpu_errors() {
  if (!kernel_log_) return;
  std::uint64_t overruns = 0;
  auto errors = kernel_log_->read_errors(overruns);
  if (overruns) note_loss({Loss::log_overrun, std::nullopt, driver_seen_at_, now(), {}});
  std::lock_guard lock(notes_mutex_);
  for (GpuError& error : errors) {
    error.ts = now();
    noted_errors_.push_back(std::move(error));
  }
}

}  // namespace cudabpf
