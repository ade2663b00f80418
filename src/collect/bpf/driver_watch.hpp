// Follows the NVIDIA driver while it is traced: its modules may be reloaded, its devices may get
// other numbers, and it writes GPU errors to the kernel's log.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "collect/bpf/driver_probes.hpp"
#include "collect/driver_devices.hpp"
#include "collect/kernel_log.hpp"
#include "cudabpf/source.hpp"

namespace cudabpf {

class DriverWatch {
 public:
  DriverWatch(DriverProbes& probes, const Features& features)
      : probes_(probes), features_(features) {}

  // Probes the driver in the first way that works.
  Result<> attach();
  // The feature that traces it.
  const std::string& way() const { return way_; }
  void begin(std::uint64_t begin_ns) { begin_ns_ = begin_ns; }

  // Readable when the log has more.
  std::optional<int> log_fd() const;
  // Handles newly loaded modules, whose device numbers and functions are new. `needs`: the
  // capabilities for probing them.
  void look(Capabilities needs, News& news);
  void read_log(News& news);
  // To be called when the probes are gone.
  void stop() { skipped_ = probes_.skipped(); }

  // Any thread may call these.
  DriverDevice device(std::uint32_t number) const;
  std::uint64_t skipped() const { return skipped_; }  // times that a probe did not run

 private:
  void watch_gpu_errors();
  bool renew_modules();
  std::uint64_t now() const;  // ns since the trace began

  DriverProbes& probes_;
  const Features& features_;
  std::string way_;
  std::vector<std::uint64_t> modules_;
  DriverDevices devices_;
  mutable std::mutex devices_mutex_;  // guards `devices_`, which the looking thread renews
  std::optional<KernelLog> log_;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t looked_at_ = 0;
  std::atomic<std::uint64_t> skipped_{
      0};  // as of the last query; only the looking thread may query
};

}  // namespace cudabpf
