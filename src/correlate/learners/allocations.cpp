#include "correlate/learners/allocations.hpp"

#include <algorithm>
#include <limits>

namespace cudabpf {

namespace {

bool adds(const Function& function) {
  MemoryEffect effect = function.meaning.memory;
  return effect == MemoryEffect::alloc || effect == MemoryEffect::map ||
         effect == MemoryEffect::register_;
}

bool removes(const Function& function) {
  MemoryEffect effect = function.meaning.memory;
  return effect == MemoryEffect::free || effect == MemoryEffect::unmap ||
         effect == MemoryEffect::unregister;
}

bool returns_handle(const Function& function) {
  const auto& arguments = function.arguments;
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const Argument& a) { return a.out && a.role == Role::mem_handle; });
}

bool returns_address(const Argument& argument) { return argument.out && is_address(argument.role); }

// Other libraries get their memory from calls of the driver.
bool returns_addresses(const Function& function) {
  if (function.layer() != 0) return false;
  const auto& arguments = function.arguments;
  return std::any_of(arguments.begin(), arguments.end(), returns_address);
}

// Whether it maps memory that another call or another process allocated.
bool opens(const Function& function) {
  return function.type == Type::ipc || function.type == Type::graphics;
}

bool destroys_context(const Function& function) {
  return function.type == Type::context && function.names == NamesEffect::forget;
}

constexpr std::uint32_t ALL_LOST = std::numeric_limits<std::uint32_t>::max();

}  // namespace

bool Allocations::follows(const Function& function) {
  if (function.type == Type::memory)
    return adds(function) || removes(function) || returns_handle(function);
  // Queries return only what is already known.
  return opens(function) || destroys_context(function) ||
         (function.type != Type::query && returns_addresses(function));
}

bool Allocations::frees(const Function& function) {
  return removes(function) || destroys_context(function);
}

void Allocations::follow_memory(const Frame& frame, Call& call) {
  const Function& function = *call.function;
  if (!call.has_return)
    perhaps_freed(call.pid, function, call.details);
  else if (call.result == 0)
    follow(call.pid, function, frame.freed, call.details);
  else if (frame.freed)
    stays(call.pid, function, call.details);
}

void Allocations::orphaned(Call& call) {
  const Function& function = *call.function;
  if (function.type == Type::memory) follow(call.pid, function, {}, call.details);
  if (function.names == NamesEffect::forget) context_destroyed(call.pid);
}

// Any earlier block here is gone, even if its free was not seen.
void Allocations::forget(Blocks& blocks, std::uint64_t address, std::uint64_t size) {
  blocks.erase_overlapping(address, size, [this](const Block&) { kept_--; });
}

// If there is no room for another block, the process with the most blocks gives up all of them or,
// if it is this process, goes without the new one.
bool Allocations::make_room(OfProcess& process) {
  if (bounds_.has_memory(Kept::memory, kept_)) return true;
  OfProcess& most = largest_of(processes_);
  process.all_seen = most.all_seen = false;
  bounds_.left_out(Kept::memory, &most == &process ? 1 : most.size());
  if (&most == &process) return false;
  kept_ -= most.size();
  most.blocks = {};
  most.handles = {};
  return true;
}

Block Allocations::block_of(OfProcess& process, const Function& function, const Details& details) {
  Block block{.size = *details.size, .losses = process.losses};
  if (function.kind == MemoryKind::host) {
    block.side = Block::Side::host;
  } else if (function.kind == MemoryKind::managed) {
    block.side = Block::Side::either;
  } else if (details.device) {
    bool fits = *details.device >= 0 && *details.device < std::numeric_limits<std::int16_t>::max();
    if (fits) block.device = static_cast<std::int16_t>(*details.device);
  } else if (details.handle) {
    const Block* of = process.handles.at(*details.handle);
    if (of && is_certain(process, *of)) block.device = of->device;
  }
  return block;
}

void Allocations::keep(OfProcess& process, Blocks& blocks, const Block& block) {
  if (!make_room(process)) return;
  blocks.insert(block);
  kept_++;
}

Block* Allocations::freed_by(std::uint32_t pid, const Function& function, const Details& details) {
  if (!removes(function)) return nullptr;
  auto process = processes_.find(pid);
  if (process == processes_.end()) return nullptr;
  if (details.ptr) return process->second.blocks.at(*details.ptr);
  return details.handle ? process->second.handles.at(*details.handle) : nullptr;
}

std::optional<Freed> Allocations::freeing(std::uint32_t pid, const Function& function,
                                          const Details& details) {
  Block* block = freed_by(pid, function, details);
  if (!block) return std::nullopt;
  block->going = true;
  return Freed{block->size, block->losses};
}

void Allocations::stays(std::uint32_t pid, const Function& function, const Details& details) {
  if (Block* block = freed_by(pid, function, details)) block->going = false;
}

// A block allocated after this free began is another one.
void Allocations::free(Blocks& blocks, std::uint64_t address) {
  const Block* block = blocks.at(address);
  if (!block || !block->going) return;
  kept_--;
  blocks.erase(address);
}

void Allocations::follow_handle(OfProcess& process, const Function& function,
                                const Details& details) {
  std::uint64_t handle = *details.handle;
  if (adds(function)) {
    if (process.handles.at(handle)) {  // its last release was not seen
      kept_--;
      process.handles.erase(handle);
    }
    if (!details.size) return;
    Block block = block_of(process, function, details);
    block.address = handle;
    keep(process, process.handles, block);
  } else if (removes(function)) {
    free(process.handles, handle);
  } else if (returns_handle(function)) {
    if (Block* block = process.handles.at(handle)) block->device = Block::NO_DEVICE;
  }
}

void Allocations::follow(std::uint32_t pid, const Function& function,
                         const std::optional<Freed>& freed, Details& details) {
  if (!details.ptr) {
    if (details.handle) follow_handle(processes_[pid], function, details);
    return;
  }
  if (adds(function)) {
    OfProcess& process = processes_[pid];
    forget(process.blocks, *details.ptr, details.size.value_or(1));
    if (!details.size.value_or(0)) return;
    Block block = block_of(process, function, details);
    block.address = *details.ptr;
    keep(process, process.blocks, block);
  } else if (removes(function)) {
    auto process = processes_.find(pid);
    if (process == processes_.end()) return;
    Blocks& blocks = process->second.blocks;
    if (details.size) {  // an unmap: it gives the size, and may end several mappings at once
      forget(blocks, *details.ptr, *details.size);
      return;
    }
    free(blocks, *details.ptr);
    if (freed && seen_.frees && freed->losses == process->second.losses) details.size = freed->size;
  }
}

void Allocations::follow_addresses(std::uint32_t pid, const Function& function,
                                   std::span<const std::uint64_t> outs) {
  const auto& arguments = function.arguments;
  if (opens(function) && returns_handle(function))
    if (Block* block = processes_[pid].handles.at(outs[0])) block->device = Block::NO_DEVICE;
  if (!returns_addresses(function)) return;
  OfProcess& process = processes_[pid];
  // Address and size, as cuModuleGetGlobal returns them. cuLibraryGetManaged's memory may be on
  // either side. How far the memory at any other address reaches is not known.
  bool sized = outs.size() == 2 && arguments.size() >= 2 && returns_address(arguments[0]) &&
               arguments[1].out && arguments[0].role != Role::hptr;
  if (!sized) {
    process.all_seen = false;
    if (opens(function)) forget(process.blocks, outs[0], 1);
  } else if (function.type == Type::query && process.blocks.containing(outs[0])) {
    return;  // the block is already known
  } else if (outs[0] && outs[1]) {
    bool managed = function.name == "cuLibraryGetManaged";
    forget(process.blocks, outs[0], outs[1]);
    Block block{.address = outs[0], .size = outs[1], .losses = process.losses};
    if (managed) block.side = Block::Side::either;
    keep(process, process.blocks, block);
  }
}

bool Allocations::is_certain(const OfProcess& process, const Block& block) {
  return !block.doubtful && block.losses == process.losses && process.losses != ALL_LOST;
}

std::optional<Block::Side> Allocations::side_of(const OfProcess& process, std::uint64_t address) {
  const Block* block = process.blocks.containing(address);
  if (!block) return process.all_seen ? std::optional(Block::Side::host) : std::nullopt;
  if (!is_certain(process, *block)) return std::nullopt;
  return block->side;
}

void Allocations::infer_direction(std::uint32_t pid, Details& details) const {
  auto of = processes_.find(pid);
  if (!seen_.frees || of == processes_.end() || !details.dst || !details.src) return;
  const OfProcess& process = of->second;
  if (!process.blocks.containing(*details.dst) && !process.blocks.containing(*details.src))
    return;  // it may be memory that a graph allocated, which no call returns
  using Side = Block::Side;
  auto to = side_of(process, *details.dst);
  auto from = side_of(process, *details.src);
  if (!to || !from || *to == Side::either || *from == Side::either) return;
  bool to_device = *to == Side::device;
  bool from_device = *from == Side::device;
  details.op =
      to_device ? (from_device ? Op::DtoD : Op::HtoD) : (from_device ? Op::DtoH : Op::HtoH);
  details.inferred_op = true;
}

std::optional<std::int32_t> Allocations::device_of(const OfProcess& process, std::uint64_t address,
                                                   std::uint64_t size) {
  const Block* block = process.blocks.containing(address);
  if (!block || block->device == Block::NO_DEVICE) return {};
  std::int16_t device = block->device;
  while (block && is_certain(process, *block) && block->device == device) {
    std::uint64_t end = block->address + block->size;
    if (size <= end - address) return device;
    if (end <= block->address) break;        // the sum overflowed
    block = process.blocks.containing(end);  // adjacent mappings may be of different memory
  }
  return {};
}

void Allocations::find_devices(std::uint32_t pid, const Function& function,
                               Details& details) const {
  if (!details.dst || !details.src || !details.size) return;
  if (function.size.kind == SizeRule::Kind::none) return;
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  auto to = device_of(process->second, *details.dst, *details.size);
  if (!to) return;
  auto from = device_of(process->second, *details.src, *details.size);
  if (!from || (function.op != Op::peer && to == from)) return;
  details.dst_device = to;
  details.src_device = from;
}

void Allocations::calls_lost(std::uint32_t pid) {
  OfProcess& process = processes_[pid];
  process.all_seen = false;
  if (process.losses != ALL_LOST) process.losses++;
}

void Allocations::context_destroyed(std::uint32_t pid) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  process->second.blocks.each([](Block& block) { block.doubtful = true; });
}

void Allocations::perhaps_freed(std::uint32_t pid, const Function& function,
                                const Details& details) {
  if (!details.ptr) return;
  if (Block* block = freed_by(pid, function, details)) block->doubtful = true;
}

void Allocations::process_gone(std::uint32_t pid) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  kept_ -= process->second.size();
  processes_.erase(process);
}

}  // namespace cudabpf
