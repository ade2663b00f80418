#include "analyze/live_memory.hpp"

#include <algorithm>
#include <vector>

#include "analyze/handles.hpp"
#include "analyze/processes.hpp"

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
             .alloc = names.add("alloc"),
             .free = names.add("free"),
             .map = names.add("map"),
             .unmap = names.add("unmap"),
             .import = names.add("cuMemImportFromShareableHandle"),
             .retain = names.add("cuMemRetainAllocationHandle"),
             .kinds = {}},
      listener_(listener) {
  for (std::size_t i = 0; i < MEMORY_KINDS; i++) words_.kinds[i] = names.add(MEMORY_KIND_NAMES[i]);
}

void LiveMemory::line(const Line& line) {
  each_emptied(line, [&](std::uint64_t process) { process_gone(process, line.ts); });
  if (line.kind == LineKind::call) call(line);
}

void LiveMemory::call(const Line& call) {
  if (call.type == words_.memory) memory(call);
  if (call.name == words_.import && call.has(Field::ret) && !call.failed())
    imported(processes_[call.process->number], call);
  if (call.context_gone) context_gone(call.process->number, call.context_gone, call.end());
  bool outermost = !call.has(Field::parent);
  if (outermost && !nested_.empty()) nested_.erase({call.process->number, call.tid});
}

void LiveMemory::memory(const Line& call) {
  bool alloc = call.op == words_.alloc, free = call.op == words_.free;
  bool vmm = call.memory == words_.kinds[static_cast<std::size_t>(MemoryKind::vmm)];
  if (!alloc && !free && !vmm && call.name != words_.retain) return;
  if (!call.has(Field::ret) || call.failed()) return;
  OfProcess& process = processes_[call.process->number];
  if (!alloc && !free) {
    if (call.op == words_.map) return mapped(process, call);
    if (call.op == words_.unmap) return unmapped(process, call);
    if (call.name == words_.retain) retained(process, call);
    return;
  }
  if (!call.has(vmm ? Field::handle : Field::ptr)) return;
  std::uint64_t what = vmm ? call.handle | HANDLE : call.ptr & ~HANDLE;
  if (!what) return;  // freeing null is legal
  if (was_done_inside(call, what)) return;
  if (call.has(Field::parent)) note_nested(call, what);
  if (alloc)
    allocated(process, call, vmm);
  else
    freed(process, call, vmm);
}

void LiveMemory::allocated(OfProcess& process, const Line& call, bool vmm) {
  std::uint64_t key = call.ptr & ~HANDLE;
  if (!vmm) {
    if (process.blocks.contains(key))
      listener_.ended(take(process, key), call.end(), Ended::replaced);
  } else if (auto had = process.handles.find(call.handle); had != process.handles.end()) {
    std::uint64_t before = had->second;  // its release was not seen; it may be mapped, and stay
    process.handles.erase(had);
    process.blocks.at(before).handles = 0;
    end_if_unused(process, before, call.end(), Ended::replaced);
  }
  if (!call.has(Field::size)) return;  // its entry was lost
  Block block{.process = call.process->number,
              .pid = call.pid,
              .tid = call.tid,
              .kind = kind_of(call.memory),
              .function = call.name,
              .address = vmm ? call.handle : key,
              .size = call.size,
              .since = call.end(),
              .call = call.id,
              .number = ++allocations_,
              .context = call.context};
  if (vmm) {
    key = HANDLE | block.number;
    process.handles[call.handle] = key;
    process.imported.erase(call.handle);  // its last release was not seen
  }
  process.blocks.emplace(key, Held{block});
  if (block.context && goes_with_context(block.kind)) process.of_context[block.context].insert(key);
  listener_.allocated(block);
}

void LiveMemory::freed(OfProcess& process, const Line& call, bool vmm) {
  std::uint64_t key = call.ptr & ~HANDLE;
  auto handle = process.handles.end();
  if (vmm) {
    handle = process.handles.find(call.handle);
    key = handle == process.handles.end() ? 0 : handle->second;
  }
  auto at = process.blocks.find(key);
  if (at == process.blocks.end()) {
    auto foreign = vmm ? process.imported.find(call.handle) : process.imported.end();
    if (foreign == process.imported.end())
      listener_.freed_unknown(call);
    else if (!--foreign->second)
      process.imported.erase(foreign);
    return;
  }
  // Nobody can free what has not been returned yet: this free returned after another thread had
  // got the same address, and it is the block before that one that it freed.
  if (call.ts < at->second.block.since && !call.entry_lost) return;
  if (--at->second.handles) return;
  if (vmm) process.handles.erase(handle);
  end_if_unused(process, key, call.end(), Ended::freed);
}

// A process's own memory comes back to it under the handle that it has.
void LiveMemory::imported(OfProcess& process, const Line& call) {
  std::uint64_t handle = handle_in(call.args, "handle");
  auto own = process.handles.find(handle);
  if (own != process.handles.end())
    process.blocks.at(own->second).handles++;
  else if (handle)
    process.imported[handle]++;
}

void LiveMemory::retained(OfProcess& process, const Line& call) {
  auto handle = process.handles.find(call.handle);
  if (handle != process.handles.end())
    process.blocks.at(handle->second).handles++;
  else if (auto foreign = process.imported.find(call.handle); foreign != process.imported.end())
    foreign->second++;
}

void LiveMemory::mapped(OfProcess& process, const Line& call) {
  unmapped(process, call);  // what lay here before, if its end was not seen
  auto handle = process.handles.find(call.handle);
  if (handle == process.handles.end()) return;
  process.mappings[call.ptr] = handle->second;
  process.blocks.at(handle->second).mappings++;
}

void LiveMemory::unmapped(OfProcess& process, const Line& call) {
  auto at = process.mappings.lower_bound(call.ptr);
  while (at != process.mappings.end() && at->first - call.ptr < call.size) {
    std::uint64_t of = at->second;
    at = process.mappings.erase(at);
    process.blocks.at(of).mappings--;
    end_if_unused(process, of, call.end(), Ended::freed);
  }
}

void LiveMemory::end_if_unused(OfProcess& process, std::uint64_t key, std::uint64_t ts, Ended how) {
  const Held& held = process.blocks.at(key);
  if (!held.handles && !held.mappings) listener_.ended(take(process, key), ts, how);
}

LiveMemory::Block LiveMemory::take(OfProcess& process, std::uint64_t key) {
  auto taken = process.blocks.extract(key);
  const Block& block = taken.mapped().block;
  if (auto of = process.of_context.find(block.context); of != process.of_context.end()) {
    of->second.erase(key);
    if (of->second.empty()) process.of_context.erase(of);
  }
  return block;
}

void LiveMemory::context_gone(std::uint64_t number, std::uint64_t context, std::uint64_t ts) {
  auto process = processes_.find(number);
  if (process == processes_.end()) return;
  auto keys = process->second.of_context.extract(context);
  if (keys.empty()) return;
  std::vector<Block> gone;
  for (std::uint64_t key : keys.mapped()) gone.push_back(take(process->second, key));
  in_order(gone);
  for (const Block& block : gone) listener_.ended(block, ts, Ended::with_context);
}

void LiveMemory::process_gone(std::uint64_t number, std::uint64_t ts) {
  for (auto at = nested_.lower_bound({number, 0});
       at != nested_.end() && at->first.first == number;)
    at = nested_.erase(at);
  auto process = processes_.find(number);
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
bool LiveMemory::was_done_inside(const Line& call, std::uint64_t what) const {
  auto inside = nested_.find({call.process->number, call.tid});
  if (inside == nested_.end()) return false;
  return std::any_of(inside->second.begin(), inside->second.end(), [&](const Nested& nested) {
    return nested.parent == call.id && nested.what == what;
  });
}

void LiveMemory::note_nested(const Line& call, std::uint64_t what) {
  auto& inside = nested_[{call.process->number, call.tid}];
  if (inside.size() == MAX_NESTED) inside.erase(inside.begin());
  inside.push_back({call.parent, what});
  if (nested_.size() > MAX_NESTING) nested_.erase(nested_.begin());
}

}  // namespace cudabpf::analyze
