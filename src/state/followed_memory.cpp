#include "state/followed_memory.hpp"

namespace cudabpf {

namespace {

bool succeeded(const Call& call) {
  return (call.has_return || call.entry_lost) && !call.function->is_failure(call.result);
}

MemoryKind kind_of(const Function& function) { return function.kind.value_or(MemoryKind::device); }

std::uint64_t first_of(std::span<const std::uint64_t> values) {
  return values.empty() ? 0 : values[0];
}

// `function` of a block is its device + 1 here; 0: not known. Calls may claim any number.
constexpr std::int32_t MAX_DEVICES = 256;
std::uint32_t device_tag(const Details& details) {
  if (!details.device || *details.device < 0 || *details.device >= MAX_DEVICES) return 0;
  return static_cast<std::uint32_t>(*details.device) + 1;
}

}  // namespace

std::uint32_t FollowedMemory::device_of(const LiveMemory::Block& block) {
  return block.function ? block.function - 1 : NO_DEVICE;
}

bool FollowedMemory::concerns(const Function& function) {
  return function.context != ContextEffect::none ||
         concerns_live_memory(function.memory_effect(), kind_of(function));
}

void FollowedMemory::call(const Call& call) {
  const Function& function = *call.function;
  if (succeeded(call)) {
    if (!call.captured && concerns_live_memory(function.memory_effect(), kind_of(function)))
      memory(call);
    if (call.function->context != ContextEffect::none) context(call);
  }
  if (!call.parent && function.layer() == 0) live_.outermost_returned(call.pid, call.tid);
}

void FollowedMemory::memory(const Call& call) {
  MemoryCall about;
  about.does = call.function->memory_effect();
  about.kind = kind_of(*call.function);
  about.entry_lost = call.entry_lost;
  about.process = call.pid;
  about.pid = call.pid;
  about.tid = call.tid;
  about.function = device_tag(call.details);
  about.id = call.id;
  about.parent = call.parent;
  about.ts = call.ts;
  about.end = call.ts + call.duration;
  about.context = contexts_.current(call.pid, call.tid);
  about.ptr = call.details.ptr;
  about.handle = call.details.handle;
  about.size = call.details.size;
  if (about.does == MemoryEffect::import) about.handle = first_of(call.outs);
  live_.call(about);
}

void FollowedMemory::context(const Call& call) {
  ContextCall change = context_call(call);
  change.seen_begin = sees_all(call.pid);
  if (std::uint64_t gone = contexts_.change(change))
    live_.context_gone(call.pid, gone, call.ts + call.duration);
}

// After any event of a process, it has no CUDA state: it begins, perhaps with an earlier one's pid,
// runs another program, or ends.
void FollowedMemory::process(const Process& process) {
  live_.process_gone(process.pid, process.ts);
  contexts_.process_gone(process.pid);
  if (process.op == Process::Op::fork || process.op == Process::Op::exec)
    begun_.insert(process.pid);
  else
    begun_.erase(process.pid);
}

}  // namespace cudabpf
