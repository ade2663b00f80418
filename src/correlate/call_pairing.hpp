// Entries and returns in, calls out: pairs them, nests calls, and has each completed by the
// learners before it goes into the trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "correlate/calls/bounds.hpp"
#include "correlate/calls/open_calls.hpp"
#include "correlate/calls/open_trace.hpp"
#include "correlate/learners/learners.hpp"
#include "correlate/traced_processes.hpp"
#include "cudabpf/record.hpp"
#include "cudabpf/thread_id.hpp"

namespace cudabpf {

class CallPairing {
 public:
  struct Options {
    // Calls of these functions are recorded only at entry.
    std::function<bool(const Function&)> entry_only;
    // Calls of these are not in the trace.
    std::vector<const Function*> silent;
    // How many records the thread has lost by now; empty if that cannot be known.
    std::function<std::uint32_t(ThreadId thread)> drops_of;
  };

  CallPairing(OpenTrace& trace, TracedProcesses& processes, OpenCalls& open, Learners& learners,
              Bounds& bounds, Options options)
      : trace_(trace),
        processes_(processes),
        open_(open),
        learners_(learners),
        bounds_(bounds),
        options_(std::move(options)) {}

  void entered(const Record& record, const Function& function);
  void returned(const Record& record, const Function& function);
  void thread_exited(const abi::cb_head& head);
  // Ends the calls that are still open, as unfinished: those of a process that has ended, whose
  // last thread had lost `drops` records, or all.
  struct LastThread {
    std::uint32_t tid = 0, drops = 0;
  };
  void end_process(std::uint32_t pid, LastThread last);
  void finish();

  // The calls that are open, if all records made before `until` (CLOCK_MONOTONIC) have been read.
  void each_open(std::uint64_t until, const OpenCallsNow::Visit& visit) const;

  // Calls whose entry was seen, but not what they returned through pointers.
  std::uint64_t outs_missed() const { return outs_missed_; }

 private:
  enum class Ending { returned, return_lost, unfinished, entry_only, silent };

  CallStack& stack_for(const abi::cb_head& head);
  void fill_frame(Frame& frame, const Record& record, const Function& function);
  Call call_of(const Frame& frame, ThreadId of) const;
  void end_top(CallStack& stack, ThreadId of, Ending ending, const Record* ret = nullptr);
  void add_orphan(const Record& record, const Function& function);
  void end_thread(ThreadId thread, std::optional<std::uint32_t> drops = {});
  void give_up(CallStack& stack, ThreadId of);
  void make_room_for_threads();
  bool is_silent(const Function& function) const;

  OpenTrace& trace_;
  TracedProcesses& processes_;
  OpenCalls& open_;
  Learners& learners_;
  Bounds& bounds_;
  Options options_;
  std::size_t open_calls_ = 0;  // of all threads
  std::uint64_t next_id_ = 1;
  std::uint64_t outs_missed_ = 0;
};

}  // namespace cudabpf
