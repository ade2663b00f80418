// Records in, events out: each kind of record goes to the part that knows it. A call goes forward:
// from its thread's stack through the learners into the trace.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "correlate/call_pairing.hpp"
#include "correlate/calls/bounds.hpp"
#include "correlate/calls/open_calls.hpp"
#include "correlate/calls/open_trace.hpp"
#include "correlate/gpu_errors.hpp"
#include "correlate/learners/learners.hpp"
#include "correlate/traced_processes.hpp"
#include "cudabpf/record.hpp"
#include "cudabpf/sink.hpp"
#include "cudabpf/thread_id.hpp"

namespace cudabpf {

class Correlator {
 public:
  // The function that a probe's id stands for; null if there is none.
  using FunctionOf = std::function<const Function*(std::uint16_t id)>;

  struct Options {
    std::uint64_t begin_ns = 0;  // CLOCK_MONOTONIC at the trace's ts 0
    // CLOCK_BOOTTIME at ts 0. The trace has missed no call of a process that began later.
    std::uint64_t begin_boottime_ns = std::numeric_limits<std::uint64_t>::max();
    // Calls of these functions are recorded only at entry.
    std::function<bool(const Function&)> entry_only = [](const Function&) { return false; };
    // What may be concluded from the calls that are recorded.
    Coverage coverage = {};
    Limits limits = {};
    // How many records the thread has lost by now; empty if that cannot be known.
    std::function<std::uint32_t(ThreadId thread)> drops_of = {};
    // The NVIDIA driver, if operations on its devices are traced.
    DriverCalls::DeviceOf driver_device = [](std::uint32_t) { return DriverDevice(); };
    DriverVersion driver_version = {};
  };

  Correlator(Sink& sink, FunctionOf function_of, TracedProcesses::Lookup lookup, Options options);

  void on_record(const Record& record);
  // The process has ended, though no record says so.
  void forget_process(std::uint32_t pid);
  // From now on probes go away one after the other, so only a part of what begins later is seen and
  // the trace leaves all of it out. May be called while another thread handles records.
  void stop_at(std::uint64_t monotonic_ns) { trace_.stop_at(monotonic_ns); }
  // Joins GPU operations with their issuing calls. All records that were made before this time on
  // CLOCK_MONOTONIC have been handed over.
  void settle_gpu_operations(std::uint64_t read_until) {
    learners_.gpu_operations.settle(read_until);
  }
  // The calls that are open, if all records made before `until` (CLOCK_MONOTONIC) have been read.
  void each_open(std::uint64_t until, const OpenCallsNow::Visit& visit) const {
    pairing_.each_open(until, visit);
  }
  // Ends every call that is still open, as unfinished.
  void finish();
  // The kernel's log has reported a GPU error.
  void gpu_error_logged(GpuError error) { gpu_errors_.logged(std::move(error)); }
  void settle_gpu_errors(std::uint64_t now) { gpu_errors_.settle(now); }
  // This driver was loaded while tracing.
  void driver_is(const DriverVersion& version) { learners_.driver_calls.driver_is(version); }

  TracedProcesses& processes() { return processes_; }
  const KernelNames& kernel_names() const { return learners_.names; }
  const EventCounts& counts() const { return trace_.counts(); }
  const GpuOperationCounts& gpu_operation_counts() const {
    return learners_.gpu_operations.counts();
  }
  std::uint64_t bad_records() const { return bad_records_; }
  // Calls whose entry was seen, but not what they returned through pointers.
  std::uint64_t stacks_missed() const { return learners_.stacks.missed(); }
  std::uint64_t outs_missed() const { return pairing_.outs_missed(); }
  std::uint64_t driver_returns_missed() const { return learners_.driver_calls.returns_missed(); }
  const Bounds& bounds() const { return bounds_; }

 private:
  // Null: such a record is bad.
  const Function* function_of(const Record& record);
  void on_driver(const Record& record);
  void on_process(const Record& record);
  void on_range(const Record& record);
  void on_xid(const Record& record);

  FunctionOf function_of_;
  const std::uint64_t begin_boottime_ns_;
  Bounds bounds_;
  OpenTrace trace_;
  TracedProcesses processes_;
  OpenCalls open_calls_;
  Learners learners_;
  CallPairing pairing_;
  GpuErrors gpu_errors_;
  std::uint64_t bad_records_ = 0;
};

}  // namespace cudabpf
