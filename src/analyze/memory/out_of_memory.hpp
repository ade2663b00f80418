// Who held what of a GPU's memory when an allocation failed because it ran out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/memory/blocks.hpp"
#include "analyze/memory/driver_memory.hpp"
#include "analyze/memory/memory_part.hpp"
#include "analyze/memory/traced_memory.hpp"
#include "trace/read/line.hpp"

namespace cudabpf::analyze {

struct OutOfMemory {
  static constexpr std::size_t LARGEST = 5;

  std::uint64_t ts = 0, call = 0;
  std::uint32_t pid = 0;
  Name function, holder;
  std::optional<std::int64_t> gpu;  // nothing: not known, and this is of all GPUs
  std::optional<std::uint64_t> size;
  std::uint64_t bytes = 0;    // that the trace's processes held there
  std::uint64_t unknown = 0;  // and on a GPU that is not known
  std::uint64_t driver = 0;   // what the driver had for its own needs, on all GPUs; 0: not known
  // What PyTorch's allocator had there in this process; nothing: no block of it was seen.
  std::optional<Blocks::Level> blocks;
  std::vector<MemoryPart> processes, holders, lines;  // the most bytes first
  std::vector<LiveMemory::Block> largest;
};

// Whether an allocation of GPU memory fails so.
bool runs_out(const Line& line, const TracedMemory& memory);
OutOfMemory out_of_memory(const Line& line, const TracedMemory& memory, const Blocks& blocks,
                          const DriverMemory& driver);

}  // namespace cudabpf::analyze
