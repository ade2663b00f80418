// What a learner is fed with: calls, gaps in them, and the ends of threads and processes. A learner
// keeps what follows from calls, fills it into later ones, and forgets it with its process.
//
// A learner defines those of these functions that concern it; the ones here do nothing. `Learners`
// has all learners and knows their types, so none is called through a pointer.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "correlate/calls/call_stack.hpp"
#include "cudabpf/event.hpp"
#include "cudabpf/thread_id.hpp"

namespace cudabpf {

struct Learner {
  // A call begins. The learner completes what its arguments say.
  void began(ThreadId, Frame&) {}
  // The top call of the stack ends, or is given up. The learner completes what the trace says of
  // the call. If it is not known how the call ended, it has no return.
  void ended(const CallStack&, Call&) {}
  // A call succeeded, but only its return was seen.
  void orphaned(Call&) {}

  // Calls of the process, or what they did, may be missing.
  void calls_lost(std::uint32_t /*pid*/) {}
  // Records of calls of this very thread are missing.
  void records_lost(ThreadId) {}

  // All calls of the process will be seen.
  void process_began(std::uint32_t /*pid*/) {}
  // The thread's open calls are given up next.
  void thread_ends(ThreadId) {}
  // The thread makes no calls any more. Not called for threads that end with their process.
  void thread_gone(ThreadId) {}
  void process_gone(std::uint32_t /*pid*/) {}
  // The trace ends, and with it all that is still open.
  void finished() {}

  // The names that are in use, and must stay.
  void add_names(std::unordered_set<const KernelName*>&) const {}
};

}  // namespace cudabpf
