#include "state/current_contexts.hpp"

#include <algorithm>

namespace cudabpf {

const Argument* context_argument(const Function& function) {
  auto at = std::find_if(function.arguments.begin(), function.arguments.end(),
                         [](const Argument& one) { return one.role == Role::context; });
  return at == function.arguments.end() ? nullptr : &*at;
}

ContextCall context_call(const Call& call) {
  ContextCall change;
  change.effect = call.function->context;
  change.process = call.pid;
  change.tid = call.tid;
  if (const Argument* argument = context_argument(*call.function)) {
    auto words = argument->out ? call.outs : call.words;
    if (!words.empty()) change.context = words[0];
  }
  if (call.details.device) change.device = *call.details.device;
  return change;
}

std::uint64_t CurrentContexts::change(const ContextCall& call) {
  OfProcess& process = processes_[call.process];
  std::uint64_t gone = destroyed_by(process, call);
  if (gone && destroyed_ < MAX_DESTROYED) destroyed_ += process.destroyed.insert(gone).second;
  last_process_ = 0;
  return gone;
}

std::uint64_t CurrentContexts::destroyed_by(OfProcess& process, const ContextCall& call) {
  switch (call.effect) {
    case ContextEffect::set_current:
      pop(process, call.tid);
      push(process, call.tid, call.context);
      return 0;
    case ContextEffect::create:
    case ContextEffect::of_green:
      made(process, call.context);
      if (call.effect == ContextEffect::create) push(process, call.tid, call.context);
      return 0;
    case ContextEffect::push:
      push(process, call.tid, call.context);
      return 0;
    case ContextEffect::pop:
      pop(process, call.tid);
      return 0;
    case ContextEffect::attach:
      if (process.attached.contains(call.context) || attached_ < MAX_ATTACHED)
        attached_ += process.attached[call.context]++ == 0;
      return 0;
    case ContextEffect::detach:
      return detach(process, call);
    case ContextEffect::destroy:
      if (current(call.process, call.tid) == call.context) pop(process, call.tid);
      return call.context;
    case ContextEffect::retain_primary:
    case ContextEffect::release_primary:
    case ContextEffect::reset_primary:
      return change_primary(process, call);
    default:
      return 0;
  }
}

// A new context with that handle, which another may have had before.
void CurrentContexts::made(OfProcess& process, std::uint64_t context) {
  destroyed_ -= process.destroyed.erase(context);
  attached_ -= process.attached.erase(context);
}

std::uint64_t CurrentContexts::detach(OfProcess& process, const ContextCall& call) {
  auto attached = process.attached.find(call.context);
  if (attached == process.attached.end()) {
    // It is not documented whether it also goes from the thread's stack.
    stack(process, call.tid).clear();
    return call.context;
  }
  if (!--attached->second) attached_ -= process.attached.erase(call.context);
  return 0;
}

std::uint64_t CurrentContexts::change_primary(OfProcess& process, const ContextCall& call) {
  if (!call.device) return 0;
  if (!process.primaries.contains(*call.device)) {
    if (primaries_ >= MAX_PRIMARIES) return 0;
    primaries_++;
  }
  Primary& primary = process.primaries[*call.device];
  if (call.effect == ContextEffect::retain_primary) {
    primary.context = call.context;
    primary.users++;
    destroyed_ -= process.destroyed.erase(primary.context);
    return 0;
  }
  if (call.effect == ContextEffect::release_primary) {
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
  if (stacks_ >= MAX_THREADS) {
    for (auto& [number, other] : processes_) other.stacks.clear();
    stacks_ = 0;
  }
  stacks_++;
  return process.stacks[tid];
}

void CurrentContexts::push(OfProcess& process, std::uint32_t tid, std::uint64_t context) {
  if (!context) return;
  destroyed_ -= process.destroyed.erase(context);  // it is a new context with that handle
  Stack& stack = this->stack(process, tid);
  if (stack.size() == max_depth_) stack.erase(stack.begin());
  stack.push_back(context);
}

void CurrentContexts::pop(OfProcess& process, std::uint32_t tid) {
  if (Stack& stack = this->stack(process, tid); !stack.empty()) stack.pop_back();
}

void CurrentContexts::forget_thread(std::uint64_t number, std::uint32_t tid) {
  last_process_ = 0;
  auto process = processes_.find(number);
  if (process != processes_.end()) stacks_ -= process->second.stacks.erase(tid);
}

void CurrentContexts::process_gone(std::uint64_t process) {
  last_process_ = 0;
  auto at = processes_.find(process);
  if (at == processes_.end()) return;
  stacks_ -= at->second.stacks.size();
  destroyed_ -= at->second.destroyed.size();
  primaries_ -= at->second.primaries.size();
  attached_ -= at->second.attached.size();
  processes_.erase(at);
}

}  // namespace cudabpf
