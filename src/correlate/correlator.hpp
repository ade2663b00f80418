// Records in, events out: pairs entries with returns, nests calls, names kernels, follows memory
// and processes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <unordered_set>

#include "correlate/allocations.hpp"
#include "correlate/bounds.hpp"
#include "correlate/call_devices.hpp"
#include "correlate/call_stack.hpp"
#include "correlate/coverage.hpp"
#include "correlate/driver_calls.hpp"
#include "correlate/gpu_errors.hpp"
#include "correlate/gpu_works.hpp"
#include "correlate/graphs/graphs.hpp"
#include "correlate/kernel_names.hpp"
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
    // How many records the thread has lost by now; empty if nobody can tell.
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
  void stop_at(std::uint64_t monotonic_ns) { stopped_ns_ = monotonic_ns; }
  // Joins what GPUs did with the calls that asked for it. All records that were made before this
  // time on CLOCK_MONOTONIC have been handed over.
  void settle_gpu_works(std::uint64_t read_until);
  // Ends every call that is still open, as unfinished.
  void finish();
  // The kernel's log has reported a GPU error.
  void gpu_error_logged(GpuError error) { gpu_errors_.logged(std::move(error)); }
  void settle_gpu_errors(std::uint64_t now) { gpu_errors_.settle(now); }
  // This driver was loaded while tracing.
  void driver_is(const DriverVersion& version) { driver_calls_.driver_is(version); }

  TracedProcesses& processes() { return processes_; }
  const KernelNames& kernel_names() const { return names_; }
  const EventCounts& counts() const { return counts_; }
  const GpuWorkCounts& gpu_work_counts() const { return gpu_works_.counts(); }
  std::uint64_t bad_records() const { return bad_records_; }
  // Calls whose entry was seen, but not what they returned through pointers.
  std::uint64_t outs_missed() const { return outs_missed_; }
  std::uint64_t driver_returns_missed() const { return driver_calls_.returns_missed(); }
  const Bounds& bounds() const { return bounds_; }

 private:
  enum class Ending { returned, return_lost, unfinished, entry_only, silent };

  void on_entry(const Record& record);
  void on_return(const Record& record);
  void on_process(const Record& record);
  void on_driver(const Record& record);
  void on_xid(const Record& record);
  void emit_driver(const DriverCall& call);
  CallStack& stack_for(const Record& record);
  void fill_frame(Frame& frame, const Record& record, const Function& function);
  void emit_top(CallStack& stack, ThreadId of, Ending ending, const Record* ret = nullptr);
  void emit_orphan(const Record& record, const Function& function);
  void calls_lost(std::uint32_t pid);
  void follow_memory(const Frame& frame, const Call& call, Details& details);
  void follow_names(const Frame& frame, const Call& call);
  void on_thread_exit(const abi::cb_head& head);
  void end_thread(ThreadId thread, std::optional<std::uint32_t> drops = {});
  void end_calls(CallStack& stack, ThreadId of);
  void make_room_for_threads();
  void make_room_for_names();
  bool is_silent(const Function& function) const;
  struct LastThread {  // of a process that has ended, and how many records the thread had lost
    std::uint32_t tid = 0, drops = 0;
  };
  void end_process(std::uint32_t pid, LastThread last);
  CallStack& stack_of(ThreadId thread, std::uint64_t ts);
  std::uint64_t since_begin(std::uint64_t ts) const;

  Sink& sink_;
  FunctionOf function_of_;
  Options options_;
  Bounds bounds_;
  TracedProcesses processes_;
  KernelNames names_;
  Allocations allocations_;
  CallDevices call_devices_;
  Graphs graphs_;
  DriverCalls driver_calls_;
  GpuErrors gpu_errors_;
  GpuWorks gpu_works_;
  std::map<ThreadId, CallStack> threads_;
  ThreadId last_thread_;  // most records come in runs of one thread
  CallStack* last_stack_ = nullptr;
  std::size_t open_calls_ = 0;  // of all threads
  std::atomic<std::uint64_t> stopped_ns_{std::numeric_limits<std::uint64_t>::max()};
  std::uint64_t next_id_ = 1;
  EventCounts counts_;
  std::uint64_t bad_records_ = 0;
  std::uint64_t outs_missed_ = 0;
};

}  // namespace cudabpf
