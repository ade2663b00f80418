// One capture, from the probes to the last line: owns the programs, reads the ring in a thread of
// its own, and keeps the books.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "collect/features.hpp"
#include "collect/functions.hpp"
#include "collect/kernel_log.hpp"
#include "collect/probe_set.hpp"
#include "collect/traced_libraries.hpp"
#include "correlate/correlator.hpp"
#include "cudabpf/sink.hpp"
#include "decode/driver_devices.hpp"
#include "util/system/privileges.hpp"

struct ring_buffer;

namespace cudabpf {

struct CaptureOptions {
  FunctionFilter filter;
  std::uint64_t ring_size = 32 << 20;
  bool follow_children = true;
  bool driver = false;  // trace what is asked of the NVIDIA driver
  std::vector<std::string> disabled_features;
  std::vector<std::string> libraries;  // given by --library
  std::string library_path;            // the LD_LIBRARY_PATH of what is traced
  std::vector<std::uint32_t> pids;     // processes to trace that run already
  // Nobody but these is to be traced, so nobody else is to pay; empty: it is not known who will be.
  std::vector<std::uint32_t> only_in;
};

// What the status line and the stop conditions look at, while the reader works.
struct Progress {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> lost{0};
  std::atomic<std::uint64_t> processes{0};
  std::atomic<std::uint64_t> drains{0};  // how often the ring was emptied
};

class Capture {
 public:
  // Checks permissions and kernel, loads the programs, finds and probes every libcuda.
  static Result<std::unique_ptr<Capture>> open(CaptureOptions options);
  ~Capture();

  // What it takes from now on to follow libraries, the driver and processes. The process may give
  // up everything else: what takes more is done.
  Capabilities needs() const;

  // Fills in what the capture knows of the machine and itself. The trace's ts 0 is now.
  void describe(Session& session);

  // Writes the header and starts the reader. From here on events reach `sink`, on the reader's
  // thread. What is selected before is traced from then on: it waits in the ring.
  Result<> start(Sink& sink, const Session& session);

  void select_process(std::uint32_t pid) { probes_->select_process(pid); }
  void select_cgroup(const CgroupFolder& folder) { probes_->select_cgroup(folder); }
  void select_all() { probes_->select_all(); }
  // A selected process that runs already: its `process` line comes from /proc.
  void announce(std::uint32_t pid);

  // Descriptors that become readable when a library is mapped, and what to do then.
  std::vector<int> watch_fds() const;
  void attach_new_libraries();
  // Modules of the driver that were loaded since have device numbers and functions of their own.
  void follow_driver();
  void read_gpu_errors();

  // Detaches, drains the ring and ends the trace.
  Totals stop(std::string reason, std::optional<int> command_status);

  // A traced process that has not ended.
  bool is_alive(std::uint32_t pid) const;
  // No traced process runs, by records that include all from before this call.
  bool all_ended() const;

  const Progress& progress() const { return progress_; }
  std::size_t libraries_attached() const { return libraries_->attached(); }

 private:
  explicit Capture(CaptureOptions options) : options_(std::move(options)) {}

  Result<> attach_driver();
  void watch_gpu_errors();
  DriverDevice driver_device(std::uint32_t number);
  void read_loop();
  bool drain();
  void pause(std::chrono::milliseconds time);
  void wake_reader() const;
  void report_losses();
  void forget_processes();
  void note_loss(LossEvent event);
  void note(TracedLibraries::News news);
  void deliver_notes();
  std::uint64_t now() const;  // ns since the trace began

  CaptureOptions options_;
  std::optional<Features> features_;
  FunctionNumbers numbers_;
  std::unique_ptr<ProbeSet> probes_;
  std::optional<TracedLibraries> libraries_;
  std::string driver_way_;  // the feature by which the driver is traced
  std::vector<std::uint64_t> driver_modules_;
  DriverDevices devices_;
  std::uint64_t driver_seen_at_ = 0;
  std::mutex devices_mutex_;  // of `devices_`, which the main thread renews
  std::optional<KernelLog> kernel_log_;

  Sink* sink_ = nullptr;
  std::uint64_t begin_ns_ = 0;
  std::unique_ptr<Correlator> correlator_;
  ring_buffer* ring_ = nullptr;
  std::thread reader_;
  std::atomic<bool> ending_{false};    // the trace's last moment is known
  std::atomic<bool> stopping_{false};  // nothing more will come
  // The main thread's probes on the driver have missed so many; it alone may ask them.
  std::atomic<std::uint64_t> driver_skipped_{0};
  // Ends the reader's pause.
  mutable std::mutex wake_mutex_;
  mutable std::condition_variable wake_;
  mutable bool woken_ = false;
  std::uint64_t received_ = 0;
  bool processes_came_ = false;  // since the reader last looked
  std::uint64_t reported_bad_ = 0;
  std::array<std::uint64_t, LOSS_COUNT> losses_{};
  std::array<std::uint64_t, TABLES> tables_told_{};  // left out of each, as told so far
  std::uint64_t losses_read_at_ = 0;

  // From the attaching thread to the reader, which alone speaks to the sink.
  std::mutex notes_mutex_;
  std::vector<LossEvent> noted_losses_;
  std::vector<Library> noted_libraries_;
  std::vector<std::uint32_t> announced_;
  std::vector<GpuError> noted_errors_;
  std::optional<DriverVersion> noted_version_;

  Progress progress_;
};

}  // namespace cudabpf
