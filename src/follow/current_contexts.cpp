#include "follow/current_contexts.hpp"

namespace cudabpf {

namespace {

// No program nests contexts this deep; one that only pushes must not take all memory.
constexpr std::size_t MAX_DEPTH = 64;

constexpr ContextFunction FUNCTIONS[] = {
    {"cuCtxCreate", "pctx", ContextChange::create, true},
    {"cuCtxDestroy", "ctx", ContextChange::destroy},
    {"cuCtxSetCurrent", "ctx", ContextChange::set_current},
    {"cuCtxPushCurrent", "ctx", ContextChange::push},
    {"cuCtxPopCurrent", {}, ContextChange::pop},
    {"cuDevicePrimaryCtxRetain", "pctx", ContextChange::retain_primary, true},
    {"cuDevicePrimaryCtxRelease", {}, ContextChange::release_primary},
    {"cuDevicePrimaryCtxReset", {}, ContextChange::reset_primary},
};

}  // namespace

std::span<const ContextFunction> context_functions() { return FUNCTIONS; }

std::uint64_t CurrentContexts::change(const ContextCall& call) {
  OfProcess& process = processes_[call.process];
  std::uint64_t gone = destroyed_by(process, call);
  if (gone && destroyed_ < MOST_DESTROYED) destroyed_ += process.destroyed.insert(gone).second;
  last_process_ = 0;
  return gone;
}

std::uint64_t CurrentContexts::destroyed_by(OfProcess& process, const ContextCall& call) {
  switch (call.change) {
    case ContextChange::set_current:
      pop(process, call.tid);
      push(process, call.tid, call.context);
      return 0;
    case ContextChange::create:
    case ContextChange::push:
      push(process, call.tid, call.context);
      return 0;
    case ContextChange::pop:
      pop(process, call.tid);
      return 0;
    case ContextChange::destroy:
      if (current(call.process, call.tid) == call.context) pop(process, call.tid);
      return call.context;
    default:
      return change_primary(process, call);
  }
}

std::uint64_t CurrentContexts::change_primary(OfProcess& process, const ContextCall& call) {
  if (!call.device) return 0;
  if (!process.primaries.contains(*call.device)) {
    if (primaries_ >= MOST_PRIMARIES) return 0;
    primaries_++;
  }
  Primary& primary = process.primaries[*call.device];
  if (call.change == ContextChange::retain_primary) {
    primary.context = call.context;
    primary.users++;
    destroyed_ -= process.destroyed.erase(primary.context);
    return 0;
  }
  if (call.change == ContextChange::release_primary) {
    if (primary.users) primary.users--;
    if (primary.users || !call.seen_begin) return 0;
  }
  return primary.context;
}

std::uint64_t CurrentContexts::current(std::uint64_t number, std::uint32_t tid) {
  if (number == last_process_ && tid == last_tid_) return last_current_;
  last_process_ = number;
  last_tid_ = tid;
  last_current_ = 0;
  auto process = processes_.find(number);
  if (process == processes_.end()) return 0;
  auto stack = process->second.stacks.find(tid);
  if (stack != process->second.stacks.end() && !stack->second.empty() &&
      !process->second.destroyed.contains(stack->second.back()))
    last_current_ = stack->second.back();
  return last_current_;
}

// Threads end unseen: once there are too many, all stacks are forgotten.
CurrentContexts::Stack& CurrentContexts::stack(OfProcess& process, std::uint32_t tid) {
  auto at = process.stacks.find(tid);
  if (at != process.stacks.end()) return at->second;
  if (stacks_ >= MOST_THREADS) {
    for (auto& [number, other] : processes_) other.stacks.clear();
    stacks_ = 0;
  }
  stacks_++;
  return process.stacks[tid];
}

void CurrentContexts::push(OfProcess& process, std::uint32_t tid, std::uint64_t context) {
  if (!context) return;
  destroyed_ -= process.destroyed.erase(context);  // a new context by that handle
  Stack& stack = this->stack(process, tid);
  if (stack.size() == MAX_DEPTH) stack.erase(stack.begin());
  stack.push_back(context);
}

void CurrentContexts::pop(OfProcess& process, std::uint32_t tid) {
  if (Stack& stack = this->stack(process, tid); !stack.empty()) stack.pop_back();
}

void CurrentContexts::process_gone(std::uint64_t process) {
  last_process_ = 0;
  auto at = processes_.find(process);
  if (at == processes_.end()) return;
  stacks_ -= at->second.stacks.size();
  destroyed_ -= at->second.destroyed.size();
  primaries_ -= at->second.primaries.size();
  processes_.erase(at);
}

}  // namespace cudabpf
