// How much memory of each kind was allocated, freed and held, as far as the trace has seen it.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "cudabpf/event.hpp"
#include "cudabpf/memory_kind.hpp"

namespace cudabpf {

struct MemoryFigures {
  std::uint64_t allocations = 0, allocated = 0;  // calls, bytes
  std::uint64_t frees = 0, freed = 0;
  std::uint64_t released = 0;  // bytes that went away with their process
  std::uint64_t held = 0, peak = 0;
};

class MemoryHeld {
 public:
  // The call succeeded, and returned memory.
  void allocated(std::uint32_t pid, MemoryKind kind, const Details& details);
  // Memory that was allocated before the trace began is not known, and changes nothing.
  void freed(std::uint32_t pid, MemoryKind kind, const Details& details);
  void process_gone(std::uint32_t pid);

  const std::array<MemoryFigures, MEMORY_KINDS>& by_kind() const { return by_kind_; }

 private:
  struct Allocation {
    std::uint64_t size;
    MemoryKind kind;  // a free does not tell it: cuMemFree frees managed memory too
  };
  using Allocations = std::unordered_map<std::uint64_t, Allocation>;

  MemoryFigures& figures(MemoryKind kind) { return by_kind_[static_cast<std::size_t>(kind)]; }
  void drop(const Allocation& allocation) { figures(allocation.kind).held -= allocation.size; }

  std::unordered_map<std::uint32_t, Allocations> processes_;
  std::array<MemoryFigures, MEMORY_KINDS> by_kind_{};
};

}  // namespace cudabpf
