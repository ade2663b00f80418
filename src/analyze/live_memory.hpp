// Memory that was allocated, from its allocation to its end: a free, another allocation at its
// address, the end of its context or of its process.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "analyze/contexts.hpp"
#include "analyze/line.hpp"
#include "cudabpf/memory_kind.hpp"

namespace cudabpf::analyze {

class LiveMemory {
 public:
  struct Block {
    std::uint32_t pid = 0, tid = 0;  // who allocated it
    MemoryKind kind = MemoryKind::device;
    Name function;
    std::uint64_t address = 0;  // of VMM memory its handle
    std::uint64_t size = 0;
    std::uint64_t since = 0;    // ns: when the allocation returned
    std::uint64_t call = 0;     // its id
    std::uint64_t number = 0;   // of the allocations that succeeded, from 1, as their lines stand
    std::uint64_t context = 0;  // current on that thread; 0: not known
  };
  enum class Ended : std::uint8_t {
    freed,
    replaced,  // its address was allocated anew: its free was not seen, or returned late
    with_context,
    with_process,
  };
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void allocated(const Block& block) = 0;
    virtual void ended(const Block& block, std::uint64_t ts, Ended how) = 0;
    // A free that succeeded, of what no allocation in the trace returned. (That of null is legal,
    // and not told.)
    virtual void freed_unknown(const Line& free) = 0;
  };

  LiveMemory(Names& names, Listener& listener);
  LiveMemory(const LiveMemory&) = delete;
  LiveMemory& operator=(const LiveMemory&) = delete;

  void line(const Line& line);

  // What is live now, in no order.
  template <typename Visitor>
  void each(Visitor&& visit) const {
    for (const auto& [pid, process] : processes_)
      for (const auto& [key, held] : process.blocks) visit(held.block);
  }

 private:
  // VMM memory is known by a handle, which may be any number: kept apart from addresses, whose top
  // bit is never set.
  static constexpr std::uint64_t HANDLE = std::uint64_t{1} << 63;

  // VMM memory is there as long as its handle, or one mapping of it, is.
  struct Held {
    Block block;
    std::uint32_t handles = 1, mappings = 0;
  };
  struct Process {
    std::unordered_map<std::uint64_t, Held> blocks;  // by address or handle
    std::map<std::uint64_t, std::uint64_t>
        mappings;  // of VMM memory: address, and key of the block
  };
  // A call that stands inside of another, and may be what that does.
  struct Nested {
    std::uint64_t parent = 0, key = 0;
  };

  void memory(const Line& call);
  void allocated(Process& process, std::uint64_t key, const Line& call);
  void freed(Process& process, std::uint64_t key, const Line& call);
  void mapped(Process& process, const Line& call);
  void unmapped(Process& process, const Line& call);
  void end_if_unused(Process& process, std::uint64_t key, std::uint64_t ts);
  void context_gone(std::uint32_t pid, std::uint64_t context, std::uint64_t ts);
  void process_gone(std::uint32_t pid, std::uint64_t ts);

  MemoryKind kind_of(Name kind) const;
  bool was_done_inside(const Line& call, std::uint64_t key);

  struct Words {
    Name memory, context, alloc, free, map, unmap, retain;
    std::array<Name, MEMORY_KINDS> kinds;
  };
  Words words_;
  Listener& listener_;
  Contexts contexts_;
  std::unordered_map<std::uint32_t, Process> processes_;
  std::uint64_t allocations_ = 0;
  std::array<Nested, 16> nested_{};
  std::size_t next_nested_ = 0;
};

}  // namespace cudabpf::analyze
