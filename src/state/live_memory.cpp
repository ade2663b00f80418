#include "state/live_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "util/console/terminal.hpp"
#include "util/page/page.hpp"

namespace cudabpf {

namespace {

// Stream-ordered memory belongs to a pool of the device, VMM memory to the process.
bool goes_with_context(MemoryKind kind) {
  return kind != MemoryKind::async && kind != MemoryKind::vmm;
}

bool is_vmm(const MemoryCall& call) { return call.kind == MemoryKind::vmm; }

}  // namespace

void LiveMemory::call(const MemoryCall& call) {
  OfProcess& process = processes_[call.process];
  process.pid = call.pid;
  switch (call.does) {
    case MemoryEffect::alloc:
    case MemoryEffect::free:
      return allocated_or_freed(process, call);
    case MemoryEffect::map:
      return mapped(process, call);
    case MemoryEffect::unmap:
      return unmapped(process, call);
    case MemoryEffect::import:
      return imported(process, call);
    case MemoryEffect::retain:
      return retained(process, call);
    default:
      return;
  }
}

void LiveMemory::allocated_or_freed(OfProcess& process, const MemoryCall& call) {
  bool vmm = is_vmm(call);
  const auto& known_by = vmm ? call.handle : call.ptr;
  if (!known_by) return;
  std::uint64_t what = vmm ? *known_by | HANDLE : *known_by & ~HANDLE;
  if (!what) return;  // freeing null is legal
  if (was_done_inside(call, what)) return;
  if (call.parent) note_nested(call, what);
  if (call.does == MemoryEffect::alloc)
    allocated(process, call);
  else
    freed(process, call);
}

void LiveMemory::allocated(OfProcess& process, const MemoryCall& call) {
  bool vmm = is_vmm(call);
  std::uint64_t key = vmm ? 0 : *call.ptr & ~HANDLE;
  if (!vmm) {
    if (Place before = blocks_.find(call.process, key); before != BlockTable::NONE)
      end(before, call.end, Ended::replaced);
  } else if (auto had = process.handles.find(*call.handle); had != process.handles.end()) {
    Place before = had->second;  // its release was not seen; it stays if it is mapped
    process.handles.erase(had);
    blocks_[before].handles = 0;
    end_if_unused(before, call.end, Ended::replaced);
  }
  if (!call.size) return;                           // its entry was lost
  if (vmm) forget_imported(process, *call.handle);  // its last release was not seen
  allocations_++;
  if (!has_memory()) {
    process.left_out++;
    left_out_.add({1, *call.size, 0});
    return;
  }
  BlockTable::Held held;
  held.key = vmm ? HANDLE | allocations_ : key;
  held.number = vmm ? *call.handle : allocations_;
  held.size = *call.size;
  held.since = call.end;
  held.call = call.id;
  held.tid = call.tid;
  held.function = call.function & BlockTable::MAX_FUNCTIONS;
  held.kind = call.kind;
  held.origin = call.origin;
  Place place = blocks_.add(call.process, goes_with_context(call.kind) ? call.context : 0, held);
  if (vmm) process.handles[*call.handle] = place;
  listener_.allocated(block_of(blocks_[place]));
}

void LiveMemory::freed(OfProcess& process, const MemoryCall& call) {
  Place place = BlockTable::NONE;
  bool vmm = is_vmm(call);
  auto handle = process.handles.end();
  if (vmm) {
    handle = process.handles.find(*call.handle);
    if (handle != process.handles.end()) place = handle->second;
  } else {
    place = blocks_.find(call.process, *call.ptr & ~HANDLE);
  }
  if (place == BlockTable::NONE) return freed_unknown(process, call);
  // Memory cannot be freed before its allocation has returned: this free returned after another
  // thread had got the same address, so it freed the block that had been there before.
  if (call.ts < blocks_[place].since && !call.entry_lost) return;
  if (--blocks_[place].handles) return;
  if (vmm) process.handles.erase(handle);
  end_if_unused(place, call.end, Ended::freed);
}

void LiveMemory::freed_unknown(OfProcess& process, const MemoryCall& call) {
  auto foreign = is_vmm(call) ? process.imported.find(*call.handle) : process.imported.end();
  if (foreign != process.imported.end()) {
    if (!--foreign->second) forget_imported(process, *call.handle);
  } else if (process.left_out) {
    process.left_out--;
  } else {
    listener_.freed_unknown(call);
  }
}

// A process that imports its own memory gets the handle that it already has.
void LiveMemory::imported(OfProcess& process, const MemoryCall& call) {
  std::uint64_t handle = call.handle.value_or(0);
  auto own = process.handles.find(handle);
  if (own != process.handles.end()) {
    blocks_[own->second].handles++;
  } else if (auto known = process.imported.find(handle); known != process.imported.end()) {
    known->second++;
  } else if (handle && has_memory()) {
    process.imported[handle] = 1;
    others_++;
  } else if (handle) {
    process.left_out++;
  }
}

void LiveMemory::forget_imported(OfProcess& process, std::uint64_t handle) {
  others_ -= process.imported.erase(handle);
}

void LiveMemory::retained(OfProcess& process, const MemoryCall& call) {
  if (!call.handle) return;
  auto handle = process.handles.find(*call.handle);
  if (handle != process.handles.end())
    blocks_[handle->second].handles++;
  else if (auto foreign = process.imported.find(*call.handle); foreign != process.imported.end())
    foreign->second++;
}

void LiveMemory::mapped(OfProcess& process, const MemoryCall& call) {
  unmapped(process, call);  // what was here before, if its end was not seen
  if (!call.ptr || !call.handle) return;
  auto handle = process.handles.find(*call.handle);
  if (handle == process.handles.end()) return;
  Place mapped = handle->second;
  auto before = process.mappings.find(*call.ptr);  // still there if `call` has no size
  if (before == process.mappings.end() && !has_memory()) return left_out_.add({0, 0, 1});
  blocks_[mapped].mappings++;
  if (before == process.mappings.end()) {
    others_++;
    process.mappings[*call.ptr] = mapped;
    return;
  }
  Place was = std::exchange(before->second, mapped);
  blocks_[was].mappings--;
  end_if_unused(was, call.end, Ended::freed);
}

void LiveMemory::unmapped(OfProcess& process, const MemoryCall& call) {
  if (!call.ptr) return;
  auto at = process.mappings.lower_bound(*call.ptr);
  while (at != process.mappings.end() && at->first - *call.ptr < call.size.value_or(0)) {
    Place of = at->second;
    at = process.mappings.erase(at);
    others_--;
    blocks_[of].mappings--;
    end_if_unused(of, call.end, Ended::freed);
  }
}

void LiveMemory::end_if_unused(Place place, std::uint64_t ts, Ended how) {
  const BlockTable::Held& held = blocks_[place];
  if (!held.handles && !held.mappings) end(place, ts, how);
}

void LiveMemory::end(Place place, std::uint64_t ts, Ended how) {
  Block block = block_of(blocks_[place]);
  blocks_.remove(place);
  listener_.ended(block, ts, how);
}

// Reported in the order in which they were allocated.
void LiveMemory::end_all(std::vector<Place> places, std::uint64_t ts, Ended how) {
  auto number = [&](Place place) { return block_of(blocks_[place]).number; };
  std::sort(places.begin(), places.end(), [&](Place a, Place b) { return number(a) < number(b); });
  for (Place place : places) end(place, ts, how);
}

LiveMemory::Block LiveMemory::block_of(const BlockTable::Held& held) const {
  bool vmm = held.key & HANDLE;
  std::uint64_t process = blocks_.process_of(held);
  return {.process = process,
          .pid = processes_.at(process).pid,
          .tid = held.tid,
          .kind = held.kind,
          .function = held.function,
          .origin = held.origin,
          .address = vmm ? held.number : held.key,
          .size = held.size,
          .since = held.since,
          .call = held.call,
          .number = vmm ? held.key & ~HANDLE : held.number};
}

void LiveMemory::context_gone(std::uint64_t number, std::uint64_t context, std::uint64_t ts) {
  end_all(blocks_.of_context(number, context), ts, Ended::with_context);
}

void LiveMemory::process_gone(std::uint64_t number, std::uint64_t ts) {
  for (auto at = nested_.lower_bound({number, 0});
       at != nested_.end() && at->first.first == number;)
    at = nested_.erase(at);
  auto process = processes_.find(number);
  if (process == processes_.end()) return;
  end_all(blocks_.of_process(number), ts, Ended::with_process);
  others_ -= process->second.mappings.size() + process->second.imported.size();
  processes_.erase(process);
}

void LiveMemory::LeftOut::add(const LeftOut& other) {
  blocks += other.blocks;
  // A call may claim any size: the sum must not wrap around.
  std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - bytes;
  bytes += std::min(other.bytes, room);
  mappings += other.mappings;
}

// A nested call ends before the call that made it: if both are about the same memory, they count as
// one.
bool LiveMemory::was_done_inside(const MemoryCall& call, std::uint64_t what) const {
  auto inside = nested_.find({call.process, call.tid});
  if (inside == nested_.end()) return false;
  return std::any_of(inside->second.begin(), inside->second.end(), [&](const Nested& nested) {
    return nested.parent == call.id && nested.what == what;
  });
}

void LiveMemory::note_nested(const MemoryCall& call, std::uint64_t what) {
  auto& inside = nested_[{call.process, call.tid}];
  if (inside.size() == MAX_NESTED) inside.erase(inside.begin());
  inside.push_back({call.parent, what});
  if (nested_.size() > MAX_NESTING) nested_.erase(nested_.begin());
}

std::string text_of(const LiveMemory::LeftOut& left_out) {
  std::string text = fmt::format(
      "{} of {} in all were not followed, and are in none of these figures: at most {} blocks are "
      "followed at once.",
      count_of(left_out.blocks, "allocation", "allocations"), human_bytes(left_out.bytes),
      with_commas(LiveMemory::MAX));
  if (left_out.mappings)
    text += fmt::format(" Nor were {}: their memory may seem to be freed too early.",
                        count_of(left_out.mappings, "mapping", "mappings"));
  return text;
}

}  // namespace cudabpf
