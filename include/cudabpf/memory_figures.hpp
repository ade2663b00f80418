// How much memory of one kind was allocated, freed and held, as far as the trace saw it.
#pragma once

#include <array>
#include <cstdint>

#include "cudabpf/memory_kind.hpp"

namespace cudabpf {

struct MemoryFigures {
  std::uint64_t allocations = 0, allocated = 0;  // calls, bytes
  std::uint64_t frees = 0, freed = 0;
  std::uint64_t released = 0;  // bytes that went away with their process
  std::uint64_t held = 0, peak = 0;
};
using MemoryByKind = std::array<MemoryFigures, MEMORY_KINDS>;

}  // namespace cudabpf
