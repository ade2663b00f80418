#include "collect/bpf/driver_watch.hpp"

#include <utility>

#include "collect/bpf/nvidia_devices.hpp"
#include "collect/driver_functions.hpp"
#include "collect/machine.hpp"
#include "util/console/log.hpp"
#include "util/system/clock.hpp"
#include "util/system/privileges.hpp"

namespace cudabpf {

namespace {

constexpr std::uint64_t LOOK_EVERY_NS = 100'000'000;

}  // namespace

std::uint64_t DriverWatch::now() const { return now_ns(CLOCK_MONOTONIC) - begin_ns_; }

Result<> DriverWatch::attach() {
  modules_ = driver_modules();
  devices_ = nvidia_devices();
  probes_.set_devices(devices_);
  probes_.set_version(DriverVersion::parse(nvidia_driver().version));
  way_ = TRY(probes_.attach(features_));
  watch_gpu_errors();
  return ok();
}

// The driver's tracepoint says when, the kernel's log says which process: either is enough.
void DriverWatch::watch_gpu_errors() {
  bool traced = !features_.is_disabled(feature::XID_TRACEPOINT) && probes_.attach_xid();
  if (log_) return;
  auto log = KernelLog::open();
  if (log)
    log_.emplace(std::move(*log));
  else if (!traced)
    log::hint("GPU errors are not seen: {}", log.error().message);
}

DriverDevice DriverWatch::device(std::uint32_t number) const {
  std::lock_guard lock(devices_mutex_);
  return {devices_.node(number), devices_.name(number)};
}

std::optional<int> DriverWatch::log_fd() const {
  return log_ ? std::optional(log_->fd()) : std::nullopt;
}

// True if a module was loaded since the last call.
bool DriverWatch::renew_modules() {
  std::vector<std::uint64_t> before = std::exchange(modules_, driver_modules());
  bool loaded = false;
  for (std::size_t i = 0; i < before.size(); i++)
    loaded |= modules_[i] != 0 && modules_[i] != before[i];
  return loaded;
}

void DriverWatch::look(Capabilities needs, News& news) {
  read_log(news);
  // The looking thread wakes at every mapping on the machine, but modules load seldom.
  if (now() - looked_at_ < LOOK_EVERY_NS) return;
  std::uint64_t since = std::exchange(looked_at_, now());
  skipped_ = probes_.skipped();
  if (DriverDevices renewed = nvidia_devices(); renewed != devices_) {
    std::lock_guard lock(devices_mutex_);
    devices_ = std::move(renewed);
    probes_.set_devices(devices_);
  }
  if (!renew_modules()) return;
  privileges::Raised rights(needs);
  // Probes on functions go away with their module; those on system calls stay.
  auto version = DriverVersion::parse(nvidia_driver().version);
  probes_.set_version(version);
  std::string detail;
  if (way_ != feature::SYSCALL_TRACEPOINTS) {
    probes_.detach();
    if (auto way = probes_.attach(features_); way)
      way_ = *way;
    else
      detail = "it is no longer traced: " + way.error().message;
  }
  watch_gpu_errors();
  news.losses.push_back({Loss::late_driver, std::nullopt, since, now(), std::move(detail)});
  news.driver = version;
}

void DriverWatch::read_log(News& news) {
  if (!log_) return;
  std::uint64_t overruns = 0;
  auto errors = log_->read_errors(overruns);
  if (overruns) news.losses.push_back({Loss::log_overrun, std::nullopt, looked_at_, now(), {}});
  for (GpuError& error : errors) {
    error.ts = now();
    news.gpu_errors.push_back(std::move(error));
  }
}

}  // namespace cudabpf
