#include "analyze/circumstances/current_contexts.hpp"

#include <algorithm>

#include "analyze/circumstances/processes.hpp"
#include "analyze/trace/handles.hpp"

namespace cudabpf::analyze {

namespace {

// No program nests contexts this deep; one that only pushes must not take all memory.
constexpr std::size_t MAX_DEPTH = 64;

}  // namespace

CurrentContexts::CurrentContexts(Names& names)
    : words_{names.add("cuCtxCreate"),
             names.add("cuCtxDestroy"),
             names.add("cuCtxSetCurrent"),
             names.add("cuCtxPushCurrent"),
             names.add("cuCtxPopCurrent"),
             names.add("cuDevicePrimaryCtxRetain"),
             names.add("cuDevicePrimaryCtxRelease"),
             names.add("cuDevicePrimaryCtxReset")} {}

void CurrentContexts::follow(Line& line) {
  if (!processes_.empty()) each_emptied(line, [this](std::uint64_t process) { forget(process); });
  if (line.kind != LineKind::call) return;
  line.context = current(line);
  if (line.type != Type::context || !line.has(Field::ret) || line.failed()) return;
  line.context_gone = change(line);
  if (line.context_gone) {
    auto& destroyed = processes_[line.process->number].destroyed;
    if (destroyed_ < MOST_DESTROYED) destroyed_ += destroyed.insert(line.context_gone).second;
  }
  last_process_ = 0;
}

// The context that the call destroys; 0: none.
std::uint64_t CurrentContexts::change(const Line& call) {
  OfProcess& process = processes_[call.process->number];
  if (call.name == words_.create) {
    push(process, call.tid, handle_in(call.args, "pctx"));
  } else if (call.name == words_.set_current) {
    pop(process, call.tid);
    push(process, call.tid, handle_in(call.args, "ctx"));
  } else if (call.name == words_.push) {
    push(process, call.tid, handle_in(call.args, "ctx"));
  } else if (call.name == words_.pop) {
    pop(process, call.tid);
  } else if (call.name == words_.destroy) {
    std::uint64_t context = handle_in(call.args, "ctx");
    if (call.context == context) pop(process, call.tid);
    return context;
  }
  bool about_primary =
      call.name == words_.retain || call.name == words_.release || call.name == words_.reset;
  if (!about_primary || !call.has(Field::ordinal)) return 0;
  if (!process.primaries.contains(call.ordinal)) {
    if (primaries_ >= MOST_PRIMARIES) return 0;
    primaries_++;
  }
  Primary& primary = process.primaries[call.ordinal];
  if (call.name == words_.retain) {
    primary.context = handle_in(call.args, "pctx");
    primary.users++;
    destroyed_ -= process.destroyed.erase(primary.context);
    return 0;
  }
  if (call.name == words_.release) {
    if (primary.users) primary.users--;
    if (primary.users || !call.process->seen_begin) return 0;
  }
  return primary.context;
}

// 0: not known.
std::uint64_t CurrentContexts::current(const Line& call) {
  std::uint64_t number = call.process->number;
  if (number == last_process_ && call.tid == last_tid_) return last_current_;
  last_process_ = number;
  last_tid_ = call.tid;
  last_current_ = 0;
  auto process = processes_.find(number);
  if (process == processes_.end()) return 0;
  auto stack = process->second.stacks.find(call.tid);
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

void CurrentContexts::forget(std::uint64_t process) {
  last_process_ = 0;
  auto at = processes_.find(process);
  if (at == processes_.end()) return;
  stacks_ -= at->second.stacks.size();
  destroyed_ -= at->second.destroyed.size();
  primaries_ -= at->second.primaries.size();
  processes_.erase(at);
}

}  // namespace cudabpf::analyze
