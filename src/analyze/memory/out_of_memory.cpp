#include "analyze/memory/out_of_memory.hpp"

#include <algorithm>
#include <tuple>

#include "analyze/derived/processes.hpp"
#include "analyze/memory/memory_peak.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::int64_t NO_ROOM = 2;  // CUDA_ERROR_OUT_OF_MEMORY
constexpr std::size_t MOST_PARTS = 256;

// What is beyond MOST_PARTS is only in the sum of all.
void add_to(std::vector<OutOfMemory::Part>& parts, std::uint32_t pid, Name name,
            const LiveMemory::Block& block) {
  auto part = std::find_if(parts.begin(), parts.end(), [&](const OutOfMemory::Part& known) {
    return known.pid == pid && (pid || known.name == name);
  });
  if (part == parts.end()) {
    if (parts.size() == MOST_PARTS) return;
    parts.push_back({pid, name});
    part = parts.end() - 1;
  }
  part->bytes += block.size;
  part->blocks++;
}

void sort(std::vector<OutOfMemory::Part>& parts) {
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.bytes, a.pid, a.name.id) < std::tuple(a.bytes, b.pid, b.name.id);
  });
  bool known = std::any_of(parts.begin(), parts.end(),
                           [](const auto& part) { return part.pid || part.name; });
  if (!known) parts.clear();
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
  memory.live().each([&](const LiveMemory::Block& block) {
    const MemoryOrigin& origin = memory.origin_of(block);
    if (block.kind == MemoryKind::host) return;
    if (out.gpu && !origin.gpu) out.unknown += block.size;
    if (out.gpu && origin.gpu != out.gpu) return;
    out.bytes += block.size;
    add_to(out.processes, block.pid, origin.comm, block);
    add_to(out.holders, 0, origin.holder, block);
    add_to(out.lines, 0, origin.line, block);
    MemoryPeak::keep_largest(out.largest, block, OutOfMemory::LARGEST);
  });
  for (auto* parts : {&out.processes, &out.holders, &out.lines}) sort(*parts);
  return out;
}

}  // namespace cudabpf::analyze
