#include "correlate/calls/open_calls.hpp"

namespace cudabpf {

CallStack* OpenCalls::find(ThreadId thread) {
  if (last_stack_ && last_thread_ == thread) return last_stack_;
  auto at = threads_.find(thread);
  if (at == threads_.end()) return nullptr;
  last_thread_ = thread;
  return last_stack_ = &at->second;
}

const CallStack* OpenCalls::find(ThreadId thread) const {
  auto at = threads_.find(thread);
  return at == threads_.end() ? nullptr : &at->second;
}

CallStack& OpenCalls::add(ThreadId thread) {
  last_thread_ = thread;
  last_stack_ = &threads_[thread];
  return *last_stack_;
}

void OpenCalls::forget(ThreadId thread) {
  last_stack_ = nullptr;
  threads_.erase(thread);
}

bool OpenCalls::forget_idle() {
  last_stack_ = nullptr;
  std::erase_if(threads_, [](const auto& item) { return item.second.depth() == 0; });
  return bounds_.has_memory(Kept::threads, 2 * threads_.size());
}

void OpenCalls::forget_all() {
  last_stack_ = nullptr;
  threads_.clear();
}

std::optional<ThreadId> OpenCalls::first(ThreadId from) const {
  auto at = threads_.lower_bound(from);
  return at == threads_.end() ? std::nullopt : std::optional(at->first);
}

void OpenCalls::add_names(std::unordered_set<const KernelName*>& to) const {
  for (const auto& [thread, stack] : threads_)
    stack.each([&](const Frame& frame) { to.insert(frame.kernel); });
}

}  // namespace cudabpf
