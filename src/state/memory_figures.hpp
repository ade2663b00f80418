// How much memory of each kind was allocated, freed and held.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "state/live_memory.hpp"

namespace cudabpf {

struct MemoryFigures {
  std::uint64_t allocations = 0, allocated = 0;      // calls, bytes
  std::uint64_t frees = 0, freed = 0;                // of memory that was freed explicitly
  std::uint64_t replaced = 0;                        // bytes whose free was not seen
  std::uint64_t with_context = 0, with_process = 0;  // bytes that went away with one
  std::uint64_t held = 0, peak = 0;

  bool any() const { return allocations || peak; }  // there is something to show
  void block_allocated(std::uint64_t size) {
    allocations++;
    allocated += size;
    held += size;
    peak = std::max(peak, held);
  }

  void block_ended(std::uint64_t size, LiveMemory::Ended how) {
    held -= size;
    switch (how) {
      case LiveMemory::Ended::freed:
        frees++;
        freed += size;
        break;
      case LiveMemory::Ended::replaced:
        replaced += size;
        break;
      case LiveMemory::Ended::with_context:
        with_context += size;
        break;
      case LiveMemory::Ended::with_process:
        with_process += size;
        break;
    }
  }
};
using MemoryByKind = std::array<MemoryFigures, MEMORY_KINDS>;

inline MemoryFigures& of_kind(MemoryByKind& figures, MemoryKind kind) {
  return figures[static_cast<std::size_t>(kind)];
}

// For a row of a table: allocations, bytes allocated, freed, at most, and now.
std::vector<std::string> cells_of(const MemoryFigures& figures);

}  // namespace cudabpf
