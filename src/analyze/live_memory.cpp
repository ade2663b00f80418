#include "analyze/live_memory.hpp"

#include <algorithm>
#include <vector>

namespace cudabpf::analyze {

namespace {

// Many blocks that end at once are told in the order in which they were allocated.
void in_order(std::vector<LiveMemory::Block>& blocks) {
  std::sort(blocks.begin(), blocks.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
}

// Stream-ordered memory belongs to a pool of the device, VMM memory to the process.
bool goes_with_context(MemoryKind kind) {
  return kind != MemoryKind::async && kind != MemoryKind::vmm;
}

}  // namespace

LiveMemory::LiveMemory(Names& names, Listener& listener)
    : words_{.memory = names.add("memory"),
             .context = names.add("context"),
             .alloc = names.add("alloc"),
             .free = names.add("free"),
             .map = names.add("map"),
             .unmap = names.add("unmap"),
             .retain = names.add("cuMemRetainAllocationHandle"),
             .kinds = {}},
      listener_(listener),
      contexts_(names) {
  for (std::size_t i = 0; i < MEMORY_KINDS; i++) words_.kinds[i] = names.add(MEMORY_KIND_NAMES[i]);
}

void LiveMemory::line(const Line& line) {
  if (line.kind == LineKind::call) {
    if (line.type == words_.memory) {
      memory(line);
    } else if (line.type == words_.context) {
      if (std::uint64_t gone = contexts_.follow(line)) context_gone(line.pid, gone, line.end());
    }
  } else if (line.kind == LineKind::process) {  // where an exit was lost, its pid is used again
    process_gone(line.pid, line.ts);
    contexts_.process(line);
  } else if (line.kind == LineKind::header) {
    contexts_.header(line);
  }
}

void LiveMemory::memory(const Line& call) {
  bool alloc = call.op == words_.alloc, free = call.op == words_.free;
  bool vmm = call.memory == words_.kinds[static_cast<std::size_t>(MemoryKind::vmm)];
  if (!alloc && !free && !vmm && call.name != words_.retain) return;
  if (!call.has(Field::ret) || call.failed()) return;
  if (!alloc && !free) {
    if (call.op == words_.map)
      mapped(processes_[call.pid], call);
    else if (call.op == words_.unmap)
      unmapped(processes_[call.pid], call);
    else if (call.name == words_.retain)
      if (auto& blocks = processes_[call.pid].blocks; blocks.contains(call.handle | HANDLE))
        blocks[call.handle | HANDLE].handles++;
    return;
  }
  if (!call.has(vmm ? Field::handle : Field::ptr)) return;
  std::uint64_t key = vmm ? call.handle | HANDLE : call.ptr & ~HANDLE;
  if (!key) return;  // freeing null is legal
  if (was_done_inside(call, key)) return;
  if (call.has(Field::parent)) nested_[next_nested_++ % nested_.size()] = {call.parent, key};
  if (alloc)
    allocated(processes_[call.pid], key, call);
  else
    freed(processes_[call.pid], key, call);
}

void LiveMemory::allocated(Process& process, std::uint64_t key, const Line& call) {
  auto at = process.blocks.find(key);
  if (at != process.blocks.end()) {
    std::erase_if(process.mappings, [key](const auto& mapping) { return mapping.second == key; });
    listener_.ended(at->second.block, call.end(), Ended::replaced);
    process.blocks.erase(at);
  }
  if (!call.has(Field::size)) return;  // its entry was lost
  Block block{.pid = call.pid,
              .tid = call.tid,
              .kind = kind_of(call.memory),
              .function = call.name,
              .address = key & HANDLE ? call.handle : key,
              .size = call.size,
              .since = call.end(),
              .call = call.id,
              .number = ++allocations_,
              .context = contexts_.current(call.pid, call.tid)};
  process.blocks.emplace(key, Held{block});
  listener_.allocated(block);
}

void LiveMemory::freed(Process& process, std::uint64_t key, const Line& call) {
  auto at = process.blocks.find(key);
  if (at == process.blocks.end() || !at->second.handles) {
    listener_.freed_unknown(call);
    return;
  }
  // Nobody can free what has not been returned yet: this free returned after another thread had
  // got the same address, and it is the block before that one that it freed.
  if (call.ts < at->second.block.since && !call.entry_lost) return;
  at->second.handles--;
  end_if_unused(process, key, call.end());
}

void LiveMemory::mapped(Process& process, const Line& call) {
  unmapped(process, call);  // what lay here before, if its end was not seen
  auto of = process.blocks.find(call.handle | HANDLE);
  if (of == process.blocks.end()) return;
  process.mappings[call.ptr] = call.handle | HANDLE;
  of->second.mappings++;
}

void LiveMemory::unmapped(Process& process, const Line& call) {
  auto at = process.mappings.lower_bound(call.ptr);
  while (at != process.mappings.end() && at->first - call.ptr < call.size) {
    std::uint64_t of = at->second;
    at = process.mappings.erase(at);
    process.blocks.at(of).mappings--;
    end_if_unused(process, of, call.end());
  }
}

void LiveMemory::end_if_unused(Process& process, std::uint64_t key, std::uint64_t ts) {
  auto at = process.blocks.find(key);
  if (at->second.handles || at->second.mappings) return;
  listener_.ended(at->second.block, ts, Ended::freed);
  process.blocks.erase(at);
}

void LiveMemory::context_gone(std::uint32_t pid, std::uint64_t context, std::uint64_t ts) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  std::vector<Block> gone;
  std::erase_if(process->second.blocks, [&](const auto& entry) {
    const Block& block = entry.second.block;
    if (block.context != context || !goes_with_context(block.kind)) return false;
    gone.push_back(block);
    return true;
  });
  in_order(gone);
  for (const Block& block : gone) listener_.ended(block, ts, Ended::with_context);
}

void LiveMemory::process_gone(std::uint32_t pid, std::uint64_t ts) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  std::vector<Block> gone;
  for (const auto& [key, held] : process->second.blocks) gone.push_back(held.block);
  processes_.erase(process);
  in_order(gone);
  for (const Block& block : gone) listener_.ended(block, ts, Ended::with_process);
}

MemoryKind LiveMemory::kind_of(Name kind) const {
  const auto* at = std::find(words_.kinds.begin(), words_.kinds.end(), kind);
  return at == words_.kinds.end() ? MemoryKind::device
                                  : static_cast<MemoryKind>(at - words_.kinds.begin());
}

// Lines of calls come before that of the call that made them: two of the same memory are one.
bool LiveMemory::was_done_inside(const Line& call, std::uint64_t key) {
  return std::any_of(nested_.begin(), nested_.end(), [&](const Nested& nested) {
    return nested.parent == call.id && nested.key == key && nested.parent;
  });
}

}  // namespace cudabpf::analyze
