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
  Process* known = process_of(call.pid);
  if (!known) return 0;
  Process& process = *known;
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
    if (Primary* primary = entry(process.primaries, call.ordinal, MAX_OF_PROCESS)) {
      primary->context = handle_in(call.args, "pctx");
      primary->users++;
    }
  } else if (call.name == words_.release || call.name == words_.reset) {
    auto primary = process.primaries.find(call.ordinal);
    if (primary == process.primaries.end()) return 0;
    if (call.name == words_.release) {
      if (primary->second.users) primary->second.users--;
      if (primary->second.users || !process.seen_begin) return 0;
    }
    return gone(process, primary->second.context);
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
  forget(line.pid);
  if (line.op == words_.exit) return;
  if (Process* process = process_of(line.pid))
    process->seen_begin = all_seen_begin_ || line.op == words_.fork || line.op == words_.exec;
}

Contexts::Process* Contexts::process_of(std::uint32_t pid) {
  auto known = processes_.find(pid);
  if (known != processes_.end()) return &known->second;
  Process* is_new = entry(processes_, pid, MAX_KEPT);
  if (is_new) is_new->seen_begin = all_seen_begin_;
  return is_new;
}

void Contexts::forget(std::uint32_t pid) {
  auto known = processes_.find(pid);
  if (known == processes_.end()) return;
  kept_ -= 1 + known->second.stacks.size() + known->second.primaries.size();
  processes_.erase(known);
}

template <typename Map>
typename Map::mapped_type* Contexts::entry(Map& map, typename Map::key_type key, std::size_t most) {
  auto known = map.find(key);
  if (known != map.end()) return &known->second;
  if (map.size() >= most || kept_ >= MAX_KEPT) return nullptr;
  kept_++;
  return &map[key];
}

void Contexts::push(Process& process, std::uint32_t tid, std::uint64_t context) {
  if (!context) return;
  auto* stack = entry(process.stacks, tid, MAX_OF_PROCESS);
  if (!stack) return;
  if (stack->size() == MAX_DEPTH) stack->erase(stack->begin());
  stack->push_back(context);
}

void Contexts::pop(Process& process, std::uint32_t tid) {
  auto stack = process.stacks.find(tid);
  if (stack != process.stacks.end() && !stack->second.empty()) stack->second.pop_back();
}

// On other threads than its destroyer's it would stay current, and fail every call.
std::uint64_t Contexts::gone(Process& process, std::uint64_t context) {
  for (auto& [tid, stack] : process.stacks) std::erase(stack, context);
  return context;
}

}  // namespace cudabpf::analyze
