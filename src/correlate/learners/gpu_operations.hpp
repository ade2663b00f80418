// Finds the call behind each GPU operation. CUPTI reports each thread's operations in the order of
// their submission, without naming the call; so a thread's calls and its operations are matched in
// order. Where either may have gaps, operations are reported without a call: none is better than
// the wrong one.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <unordered_set>
#include <vector>

#include "correlate/calls/bounds.hpp"
#include "correlate/calls/learner.hpp"
#include "correlate/calls/open_calls.hpp"
#include "correlate/calls/open_trace.hpp"
#include "correlate/learners/gpu_windows.hpp"
#include "correlate/learners/kernel_names.hpp"
#include "cudabpf/record.hpp"
#include "util/hash.hpp"

namespace cudabpf {

// Whether a call to the function makes a GPU work.
bool issues_gpu_operation(const Function& function);

class GpuOperations : public Learner {
 public:
  GpuOperations(OpenTrace& trace, const OpenCalls& open, KernelNames& names, Bounds& bounds)
      : trace_(trace), open_(open), names_(names), bounds_(bounds) {}

  // A record about what GPUs did. Times here are CLOCK_MONOTONIC.
  void on_record(const Record& record);
  // Matches operations reported long enough before `read_until`, up to which all records were read,
  // unless their thread is still in a call that may have submitted them.
  void settle(std::uint64_t read_until);

  // The graphs have learned of the call already, so it is known whether it was captured.
  void ended(const CallStack& stack, Call& call) {
    if (is_timed(call.pid) && !call.captured && call.result == 0 &&
        issues_gpu_operation(*call.function) && !stack.top_is_inside(issues_gpu_operation))
      called(call, stack.top().ts, stack.top().ts + call.duration);
  }
  void records_lost(ThreadId thread);
  void thread_gone(ThreadId thread);
  void process_gone(std::uint32_t pid);
  void finished();
  void add_names(std::unordered_set<const KernelName*>& to) const;

  const GpuOperationCounts& counts() const { return counts_; }

 private:
  // A call that submitted work to a GPU.
  struct IssuingCall {
    std::uint64_t id = 0, ts = 0, end = 0;
    const Function* function = nullptr;
    const KernelName* kernel = nullptr;
    std::optional<std::uint64_t> size, stream;
    Dim3 grid, block;
    bool has_dims = false;
    bool graph = false;
    bool counted = false;  // it leads to an operation that is recorded
    NodeWork what = NodeWork::none;
  };
  // A thread that submitted work.
  struct IssuingThread {
    std::uint32_t tid = 0;
    std::uint64_t since = 0;
    bool whole = true;  // no call of the thread was lost
    std::deque<IssuingCall> calls;
    std::size_t sorted = 0;  // the first of them: none is outside of the windows
  };
  using IssuingThreads = std::list<IssuingThread>;
  struct Batch {
    std::vector<abi::cb_gpu_operation> operations;
    std::optional<abi::cb_gpu_batch> end;  // all of it was reported
    std::uint64_t last_began = 0;          // of its operations; if one has no time, the end of time
  };
  // CUPTI's view of a thread.
  struct Lane {
    std::map<std::uint32_t, Batch> batches;
    std::uint32_t next = 0;  // the batch that comes next
    bool whole = true;       // no operation of it was lost
    // The call behind the last operation, which may have more operations.
    std::uint32_t correlation = 0;
    std::optional<IssuingCall> last;
    Unjoined why_not = Unjoined::none;
  };
  struct OfProcess {
    bool timed = false;                 // CUPTI reports times for it
    std::optional<GpuWindows> windows;  // nothing: always
    IssuingThreads threads;
    HashMap<std::uint32_t, IssuingThreads::iterator> by_tid;
    std::map<std::uint32_t, Lane> lanes;
    HashMap<std::uint64_t, const KernelName*> names;
  };

  // Whether CUPTI reports GPU times for the process.
  bool is_timed(std::uint32_t pid) const {
    if (processes_.empty()) return false;
    auto process = processes_.find(pid);
    return process != processes_.end() && process->second.timed;
  }
  void timed(const Record& record);
  void stepped(const Record& record);
  // An issuing call.
  void called(const Call& call, std::uint64_t begin, std::uint64_t end);
  void leave_out_calls_outside(OfProcess& process, std::uint64_t ended_before);
  // When the thread's oldest open issuing call began; the end of time if it has none.
  std::uint64_t issuing_since(ThreadId thread) const;
  void add(const Record& record);
  Lane* lane_of(OfProcess& process, std::uint32_t number);
  IssuingThread& thread_of(OfProcess& process, std::uint32_t tid, std::uint64_t ts);
  IssuingThread* thread_of(OfProcess& process, const abi::cb_gpu_batch& batch);
  void settle(std::uint32_t pid, OfProcess& process, std::uint64_t reported_before);
  void join(std::uint32_t pid, OfProcess& process, Lane& lane, const Batch& batch);
  void skip_calls_before(IssuingThread& thread, std::uint64_t asked);
  void find_call(const OfProcess& process, Lane& lane, IssuingThread* thread,
                 const abi::cb_gpu_operation& work);
  bool fits(const OfProcess& process, const IssuingCall& issuing,
            const abi::cb_gpu_operation& work) const;
  void emit(std::uint32_t pid, const OfProcess& process, const Lane& lane,
            const abi::cb_gpu_operation& work);
  void give_up(IssuingThread& thread, Unjoined why, std::size_t count);
  void remove_first(IssuingThread& thread, std::size_t count);
  void end(std::uint32_t pid, OfProcess& process);

  OpenTrace& trace_;
  const OpenCalls& open_;
  KernelNames& names_;
  Bounds& bounds_;
  std::map<std::uint32_t, OfProcess> processes_;
  std::size_t waiting_calls_ = 0, waiting_operations_ = 0;  // of all processes
  GpuOperationCounts counts_;
};

}  // namespace cudabpf
