#include "analyze/memory/blocks.hpp"

#include <algorithm>
#include <tuple>

#include "analyze/derived/processes.hpp"
#include "analyze/derived/range_places.hpp"

namespace cudabpf::analyze {

void Blocks::Levels::reserved_more(std::uint64_t ts) {
  now.ts = ts;
  if (std::tuple(now.reserved, now.allocated) >
      std::tuple(most_reserved.reserved, most_reserved.allocated))
    most_reserved = now;
}

void Blocks::Levels::changed(std::uint64_t ts) {
  reserved_more(ts);
  if (now.allocated > most_allocated.allocated) most_allocated = now;
  if (now.unused() > most_unused.unused()) most_unused = now;
}

void Blocks::Levels::allocate(std::uint64_t size, std::uint64_t ts) {
  now.allocated += size;
  now.blocks++;
  changed(ts);
}
void Blocks::Levels::free(std::uint64_t size, std::uint64_t ts) {
  now.allocated -= size;
  now.blocks--;
  changed(ts);
}
void Blocks::Levels::reserve(std::uint64_t size, std::uint64_t ts) {
  now.reserved += size;
  reserved_more(ts);
}
void Blocks::Levels::release(std::uint64_t size, std::uint64_t ts) {
  now.reserved -= std::min(now.reserved, size);
  changed(ts);
}

void Blocks::Levels::begin_anew(std::uint64_t ts) {
  now.ts = ts;
  most_allocated = most_reserved = most_unused = now;
}

Blocks::Blocks(Names& names, Part part, bool by_place)
    : part_(part),
      by_place_(by_place),
      holder_(names.add(api(ApiId::c10).file)),
      begun_(!part.from) {}

// Until the part begins, all is followed as in it; of that, only what is held goes into it.
bool Blocks::follows(std::uint64_t ts) {
  if (!begun_ && ts >= part_.from) {
    begun_ = true;
    for (Allocator& one : allocators_) {
      one.allocations = one.frees = 0;
      one.of_own.begin_anew(part_.from);
      one.of_all.begin_anew(part_.from);
    }
    for (OfPlace& one : places_) {
      one.allocations = one.allocated = one.frees = 0;
      one.peak = one.held;
    }
    unknown_frees_ = replaced_ = 0;
  }
  return ts < part_.to;
}

void Blocks::line(const Line& line) {
  each_emptied(line, [&](std::uint64_t process) {
    auto of = processes_.find(process);
    if (of == processes_.end()) return;
    held_ -= of->second.blocks.size();
    processes_.erase(of);
  });
  if (line.kind != LineKind::block || !line.has(Field::ptr) || !follows(line.ts)) return;
  seen_ = true;
  if (line.op == Op::alloc) allocated(line);
  if (line.op == Op::free) freed(line);
}

Blocks::Allocator* Blocks::allocator_of(std::uint64_t process, std::uint32_t pid,
                                        std::int64_t gpu) {
  if (auto known = number_of(process, gpu)) return &allocators_[*known];
  if (allocators_.size() == MAX_ALLOCATORS) return nullptr;
  processes_[process].allocators.emplace(gpu, allocators_.size());
  Allocator& added = allocators_.emplace_back();
  added.process = process;
  added.pid = pid;
  added.gpu = gpu;
  return &added;
}

std::optional<std::size_t> Blocks::number_of(std::uint64_t process, std::int64_t gpu) const {
  auto of = processes_.find(process);
  if (of == processes_.end()) return std::nullopt;
  auto known = of->second.allocators.find(gpu);
  if (known == of->second.allocators.end()) return std::nullopt;
  return known->second;
}

const Blocks::Allocator* Blocks::of(std::uint64_t process, std::int64_t gpu) const {
  auto known = number_of(process, gpu);
  return known ? &allocators_[*known] : nullptr;
}

std::size_t Blocks::place_of(const Line& line) {
  if (!by_place_ || !line.wanted) return NO_PLACE;
  std::uint64_t number = line.place ? line.place->number + 1 : 0;
  auto [at, is_new] = place_numbers_.try_emplace(number, places_.size());
  if (!is_new) return at->second;
  if (places_.size() > MAX_PLACES) return at->second = MAX_PLACES;
  OfPlace& added = places_.emplace_back();
  added.others = at->second == MAX_PLACES;
  if (!added.others) added.place = line.place;
  return at->second;
}

void Blocks::allocated(const Line& line) {
  if (!line.has(Field::size) || !line.has(Field::ordinal)) return;
  OfProcess& of = processes_[line.process->number];
  if (auto known = of.blocks.find(line.ptr); known != of.blocks.end()) {
    replaced_++;
    end(of, known, line.ts);
  }
  Allocator* allocator = allocator_of(line.process->number, line.pid, line.ordinal);
  if (held_ == MAX || !allocator) {
    left_out_++;
    return;
  }
  held_++;
  std::size_t place = place_of(line);
  of.blocks[line.ptr] = {line.size, static_cast<std::uint32_t>(allocator - allocators_.data()),
                         static_cast<std::uint32_t>(place)};
  allocator->comm = line.process->comm;
  allocator->allocations++;
  for (Levels* levels : {&allocator->of_own, &allocator->of_all})
    levels->allocate(line.size, line.ts);
  if (place == NO_PLACE) return;
  OfPlace& at = places_[place];
  at.allocations++;
  at.allocated += line.size;
  at.held += line.size;
  at.peak = std::max(at.peak, at.held);
}

void Blocks::freed(const Line& line) {
  OfProcess& of = processes_[line.process->number];
  auto block = of.blocks.find(line.ptr);
  if (block == of.blocks.end()) {
    unknown_frees_ += line.ptr != 0;
    return;
  }
  allocators_[block->second.allocator].frees++;
  if (block->second.place != NO_PLACE) places_[block->second.place].frees++;
  end(of, block, line.ts);
}

void Blocks::end(OfProcess& of, HashMap<std::uint64_t, Held>::iterator block, std::uint64_t ts) {
  const Held& held = block->second;
  Allocator& allocator = allocators_[held.allocator];
  for (Levels* levels : {&allocator.of_own, &allocator.of_all}) levels->free(held.size, ts);
  if (held.place != NO_PLACE) places_[held.place].held -= held.size;
  held_--;
  of.blocks.erase(block);
}

void Blocks::reserved(const LiveMemory::Block& block, const MemoryOrigin& origin) {
  if (!origin.gpu || !follows(block.since)) return;
  Allocator* allocator = allocator_of(block.process, block.pid, *origin.gpu);
  if (!allocator) return;
  bool own = origin.holder == holder_;
  allocator->asked |= own;
  if (own) allocator->of_own.reserve(block.size, block.since);
  allocator->of_all.reserve(block.size, block.since);
}

// What a process still has when it ends says how it ended.
void Blocks::released(const LiveMemory::Block& block, const MemoryOrigin& origin,
                      std::uint64_t ts) {
  auto known = origin.gpu ? number_of(block.process, *origin.gpu) : std::nullopt;
  if (!known || !follows(ts)) return;
  Allocator& allocator = allocators_[*known];
  if (origin.holder == holder_) allocator.of_own.release(block.size, ts);
  allocator.of_all.release(block.size, ts);
}

void Blocks::finish() {
  follows(part_.from);
  processes_.clear();  // which have allocators by their places
  std::erase_if(allocators_, [](const Allocator& one) { return !one.any(); });
  std::erase_if(places_, [](const OfPlace& one) { return !one.allocations && !one.peak; });
  std::ranges::stable_sort(allocators_, [](const Allocator& a, const Allocator& b) {
    return a.levels().most_reserved.reserved > b.levels().most_reserved.reserved;
  });
  std::ranges::stable_sort(places_, [](const OfPlace& a, const OfPlace& b) {
    return std::tuple(a.peak, a.allocated) > std::tuple(b.peak, b.allocated);
  });
}

}  // namespace cudabpf::analyze
