#include "sink/run_memory.hpp"

#include <algorithm>

namespace cudabpf {

namespace {

bool succeeded(const Call& call) {
  return (call.has_return || call.entry_lost) && !call.function->is_failure(call.result);
}

MemoryKind kind_of(const Function& function) { return function.kind.value_or(MemoryKind::device); }

std::uint64_t first_of(std::span<const std::uint64_t> values) {
  return values.empty() ? 0 : values[0];
}

// `function` of a block's key is its device + 1 here; 0: not known. Calls may claim any number.
constexpr std::int32_t MAX_DEVICES = 256;
std::uint32_t device_tag(const Details& details) {
  if (!details.device || *details.device < 0 || *details.device >= MAX_DEVICES) return 0;
  return static_cast<std::uint32_t>(*details.device) + 1;
}
std::uint32_t device_of(const LiveMemory::Block& block) {
  return block.function ? block.function - 1 : RunMemory::NO_DEVICE;
}

}  // namespace

bool RunMemory::concerns(const Function& function) {
  return function.context != ContextEffect::none ||
         concerns_live_memory(function.memory_effect(), kind_of(function));
}

void RunMemory::call(const Call& call) {
  const Function& function = *call.function;
  if (succeeded(call)) {
    if (!call.captured && concerns_live_memory(function.memory_effect(), kind_of(function)))
      memory(call);
    if (call.function->context != ContextEffect::none) context(call);
  }
  if (!call.parent && function.layer() == 0) live_.outermost_returned(call.pid, call.tid);
}

void RunMemory::memory(const Call& call) {
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

void RunMemory::context(const Call& call) {
  ContextCall change = context_call(call);
  change.seen_begin = sees_all(call.pid);
  if (std::uint64_t gone = contexts_.change(change))
    live_.context_gone(call.pid, gone, call.ts + call.duration);
}

// After any event of a process, it has no CUDA state: it begins, perhaps with an earlier one's pid,
// runs another program, or ends.
void RunMemory::process(const Process& process) {
  live_.process_gone(process.pid, process.ts);
  contexts_.process_gone(process.pid);
  if (process.op == Process::Op::fork || process.op == Process::Op::exec)
    begun_.insert(process.pid);
  else
    begun_.erase(process.pid);
}

void RunMemory::allocated(const LiveMemory::Block& block) {
  of_kind(figures_, block.kind).block_allocated(block.size);
  if (block.kind == MemoryKind::host) return;
  OfDevice& device = devices_[device_of(block)];
  device.held += block.size;
  device.peak = std::max(device.peak, device.held);
}

void RunMemory::ended(const LiveMemory::Block& block, std::uint64_t, LiveMemory::Ended how) {
  of_kind(figures_, block.kind).block_ended(block.size, how);
  if (block.kind != MemoryKind::host) devices_[device_of(block)].held -= block.size;
}

}  // namespace cudabpf
