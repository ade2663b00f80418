// The open calls of all threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_set>

#include "correlate/calls/bounds.hpp"
#include "correlate/calls/call_stack.hpp"
#include "cudabpf/thread_id.hpp"

namespace cudabpf {

class OpenCalls {
 public:
  explicit OpenCalls(const Bounds& bounds) : bounds_(bounds) {}

  // Null: the thread has no stack.
  CallStack* find(ThreadId thread);
  const CallStack* find(ThreadId thread) const;
  // Is there room for another thread?
  bool has_memory() const { return bounds_.has_memory(Kept::threads, threads_.size()); }
  CallStack& add(ThreadId thread);
  void forget(ThreadId thread);
  // Forgets threads outside any call, which need no stack. True: at most half of the room is taken.
  bool forget_idle();
  void forget_all();

  // The first thread at or after this one.
  std::optional<ThreadId> first(ThreadId from = {}) const;
  template <typename Visit>
  void each_thread(Visit&& visit) {
    for (auto& [thread, stack] : threads_) visit(thread, stack);
  }
  template <typename Visit>
  void each_thread(Visit&& visit) const {
    for (const auto& [thread, stack] : threads_) visit(thread, stack);
  }
  // The names of kernels that are being launched.
  void add_names(std::unordered_set<const KernelName*>& to) const;

 private:
  const Bounds& bounds_;
  std::map<ThreadId, CallStack> threads_;
  ThreadId last_thread_;  // most records come in runs of one thread
  CallStack* last_stack_ = nullptr;
};

}  // namespace cudabpf
