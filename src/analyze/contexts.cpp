#include "analyze/contexts.hpp"

#include <nlohmann/json.hpp>

#include "analyze/handles.hpp"

namespace cudabpf::analyze {

namespace {

// So deep no program nests contexts; one that only pushes must not take all memory.
constexpr std::size_t MAX_DEPTH = 64;

}  // namespace

Contexts::Contexts(Names& names)
    : words_{names.add("cuCtxCreate"),
             names.add("cuCtxDestroy"),
             names.add("cuCtxSetCurrent"),
             names.add("cuCtxPushCurrent"),
             names.add("cuCtxPopCurrent"),
             names.add("cuDevicePrimaryCtxRetain"),
             names.add("cuDevicePrimaryCtxRelease"),
             names.add("cuDevicePrimaryCtxReset"),
             names.add("fork"),
             names.add("exec"),
             names.add("exit")} {}

std::uint64_t Contexts::follow(const Line& call) {
  if (!call.has(Field::ret) || call.failed()) return 0;
  auto [at, is_new] = processes_.try_emplace(call.pid);
  Process& process = at->second;
  if (is_new) process.seen_begin = all_seen_begin_;
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
    return gone(process, handle_in(call.args, "ctx"));
  } else if (!call.has(Field::ordinal)) {
    return 0;
  } else if (call.name == words_.retain) {
    Primary& primary = process.primaries[call.ordinal];
    primary.context = handle_in(call.args, "pctx");
    primary.users++;
  } else if (call.name == words_.release || call.name == words_.reset) {
    Primary& primary = process.primaries[call.ordinal];
    if (call.name == words_.release) {
      if (primary.users) primary.users--;
      if (primary.users || !process.seen_begin) return 0;
    }
    return gone(process, primary.context);
  }
  return 0;
}

std::uint64_t Contexts::current(std::uint32_t pid, std::uint32_t tid) const {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return 0;
  auto stack = process->second.stacks.find(tid);
  return stack == process->second.stacks.end() || stack->second.empty() ? 0 : stack->second.back();
}

void Contexts::header(const Line& line) {
  auto header = nlohmann::json::parse(line.text, nullptr, false);
  all_seen_begin_ = header.is_object() && header.value("mode", nlohmann::json()) == "run";
}

void Contexts::process(const Line& line) {
  processes_.erase(line.pid);
  if (line.op == words_.exit) return;
  processes_[line.pid].seen_begin =
      all_seen_begin_ || line.op == words_.fork || line.op == words_.exec;
}

void Contexts::push(Process& process, std::uint32_t tid, std::uint64_t context) {
  auto& stack = process.stacks[tid];
  if (!context) return;
  if (stack.size() == MAX_DEPTH) stack.erase(stack.begin());
  stack.push_back(context);
}

void Contexts::pop(Process& process, std::uint32_t tid) {
  if (auto& stack = process.stacks[tid]; !stack.empty()) stack.pop_back();
}

// On other threads than its destroyer's it would stay current, and fail every call.
std::uint64_t Contexts::gone(Process& process, std::uint64_t context) {
  for (auto& [tid, stack] : process.stacks) std::erase(stack, context);
  return context;
}

}  // namespace cudabpf::analyze
