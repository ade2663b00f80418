#include "analyze/memory/out_of_memory.hpp"

#include <algorithm>
#include <functional>

#include "analyze/derived/processes.hpp"
#include "analyze/memory/memory_peak.hpp"
#include "util/limited.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::int64_t NO_ROOM = 2;  // CUDA_ERROR_OUT_OF_MEMORY
constexpr std::size_t MAX_PARTS = 256;

// What is beyond MAX_PARTS is only in the sum of all.
void add(MemoryParts& parts, std::uint32_t key, const MemoryPart& fresh, std::uint64_t size) {
  if (has_room_for(parts, key, MAX_PARTS)) parts.of(key, fresh).add(size);
}

std::vector<MemoryPart> known_parts(MemoryParts& parts) {
  auto all = parts.take(std::less());
  bool known = std::any_of(all.begin(), all.end(),
                           [](const MemoryPart& part) { return part.pid || part.name; });
  return known ? all : std::vector<MemoryPart>();
}

}  // namespace

bool runs_out(const Line& line, const TracedMemory& memory) {
  return line.kind == LineKind::call && line.meaning->memory == MemoryEffect::alloc &&
         line.has(Field::ret) && line.failed() && line.ret == NO_ROOM &&
         memory.kind_of(line) != MemoryKind::host;
}

OutOfMemory out_of_memory(const Line& line, const TracedMemory& memory, const Blocks& blocks,
                          const DriverMemory& driver) {
  OutOfMemory out{.ts = line.ts,
                  .call = line.id,
                  .pid = line.pid,
                  .function = line.name,
                  .holder = line.holder,
                  .gpu = {},
                  .size = {},
                  .driver = driver.own_of(line.host),
                  .blocks = {},
                  .processes = {},
                  .holders = {},
                  .lines = {},
                  .largest = {}};
  if (line.has(Field::ordinal)) out.gpu = line.ordinal;
  if (line.has(Field::size)) out.size = line.size;
  const Blocks::Allocator* allocator =
      out.gpu && line.process ? blocks.of(line.process->number, *out.gpu) : nullptr;
  if (allocator && allocator->any()) out.blocks = allocator->levels().now;
  MemoryParts processes, holders, lines;
  memory.live().each([&](const LiveMemory::Block& block) {
    const MemoryOrigin& origin = memory.origin_of(block);
    if (block.kind == MemoryKind::host) return;
    if (out.gpu && !origin.gpu) out.unknown += block.size;
    if (out.gpu && origin.gpu != out.gpu) return;
    out.bytes += block.size;
    add(processes, block.pid, {block.pid, origin.comm}, block.size);
    add(holders, origin.holder.id, {.name = origin.holder}, block.size);
    add(lines, origin.line.id, {.name = origin.line}, block.size);
    MemoryPeak::keep_largest(out.largest, block, OutOfMemory::LARGEST);
  });
  out.processes = known_parts(processes);
  out.holders = known_parts(holders);
  out.lines = known_parts(lines);
  return out;
}

}  // namespace cudabpf::analyze
