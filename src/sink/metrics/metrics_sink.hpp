// Keeps the sums that metrics print. Its page may be asked for on any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "cudabpf/sink.hpp"
#include "sink/metrics/ledger.hpp"
#include "sink/metrics/metrics_page.hpp"

namespace cudabpf {

class MetricsSink : public PartialSink {
 public:
  explicit MetricsSink(Ledger::Options options, PodNames pods = PodNames())
      : ledger_(options, std::move(pods)) {}

  // With sums that are read for it, if that takes no longer than 0.2 s. Holds up the thread that
  // takes events no longer than it takes to copy them.
  MetricsPage page();
  // The page has come to where such a reader keeps what it reads.
  void reached(MetricsReader reader, std::uint64_t page_number);

  void begin(const Session& session) override;
  void call(const Call& call) override { locked(&Ledger::call, call); }
  void driver_call(const DriverCall& call) override { locked(&Ledger::driver_call, call); }
  void gpu_error(const GpuError& error) override { locked(&Ledger::gpu_error, error); }
  void gpu_sample(const GpuSample& sample) override { locked(&Ledger::gpu_sample, sample); }
  void gpu_operation(const GpuOperation& one) override { locked(&Ledger::gpu_operation, one); }
  void gpu_window(const GpuWindow& window) override { locked(&Ledger::gpu_window, window); }
  void tallied(const Tallies& tallies) override;
  std::uint64_t oldest_tallies_ns() const override;
  void open_calls(const OpenCallsNow& calls) override { locked(&Ledger::open_calls, calls); }
  void process(const Process& process) override { locked(&Ledger::process, process); }
  void library(const Library& library) override { locked(&Ledger::library, library); }
  void lost(const LossEvent& loss) override { locked(&Ledger::lost, loss); }
  void flush() override;
  void end(const Totals&) override;

 private:
  template <typename Event>
  void locked(void (Ledger::*take)(const Event&), const Event& event) {
    std::lock_guard lock(mutex_);
    (ledger_.*take)(event);
  }

  std::mutex mutex_;
  std::condition_variable tallied_;
  std::uint64_t times_tallied_ = 0;
  std::atomic<unsigned> wanted_ = 0;  // pages that wait for sums that are new
  bool ended_ = false;                // there will be no others
  Ledger ledger_;
  std::string version_;
  std::uint64_t start_ns_ = 0;   // CLOCK_REALTIME
  std::uint64_t looked_at_ = 0;  // CLOCK_MONOTONIC
  bool warned_of_pods_ = false;
};

}  // namespace cudabpf
