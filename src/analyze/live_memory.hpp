// Memory that was allocated, from its allocation to its end: a free, another allocation at its
// address, the end of its context or of its process.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analyze/line.hpp"
#include "cudabpf/memory_kind.hpp"

namespace cudabpf::analyze {

class LiveMemory {
 public:
  struct Block {
    std::uint64_t process = 0;       // the number of whose it is
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
    for (const auto& [number, process] : processes_)
      for (const auto& [key, held] : process.blocks) visit(held.block);
  }

 private:
  // Of VMM memory, which is known by a handle: any number, which may be used again while the memory
  // is still mapped. Addresses never have the top bit.
  static constexpr std::uint64_t HANDLE = std::uint64_t{1} << 63;

  // VMM memory is there as long as its handle, or one mapping of it, is.
  struct Held {
    Block block;
    std::uint32_t handles = 1, mappings = 0;
  };
  struct OfProcess {
    // By address; VMM memory by HANDLE and the block's number.
    std::unordered_map<std::uint64_t, Held> blocks;
    std::unordered_map<std::uint64_t, std::uint64_t> handles;  // that are had: the block's key
    std::map<std::uint64_t, std::uint64_t> mappings;           // by address: the block's key
    // Handles of memory that another process allocated: how often each is had.
    std::unordered_map<std::uint64_t, std::uint32_t> imported;
    // The keys of what goes away with each context.
    std::unordered_map<std::uint64_t, std::unordered_set<std::uint64_t>> of_context;
  };
  using Thread = std::pair<std::uint64_t, std::uint32_t>;  // its process's number
  // A call that stands inside of another, and may be what that does.
  struct Nested {
    std::uint64_t parent = 0, what = 0;
  };
  // Kept at most of those whose outer call has not come: of a thread, and threads.
  static constexpr std::size_t MAX_NESTED = 16, MAX_NESTING = 4096;

  void call(const Line& call);
  void memory(const Line& call);
  void allocated(OfProcess& process, const Line& call, bool vmm);
  void freed(OfProcess& process, const Line& call, bool vmm);
  static void imported(OfProcess& process, const Line& call);
  static void retained(OfProcess& process, const Line& call);
  void mapped(OfProcess& process, const Line& call);
  void unmapped(OfProcess& process, const Line& call);
  void end_if_unused(OfProcess& process, std::uint64_t key, std::uint64_t ts, Ended how);
  static Block take(OfProcess& process, std::uint64_t key);
  void context_gone(std::uint64_t process, std::uint64_t context, std::uint64_t ts);
  void process_gone(std::uint64_t process, std::uint64_t ts);

  MemoryKind kind_of(Name kind) const;
  bool was_done_inside(const Line& call, std::uint64_t what) const;
  void note_nested(const Line& call, std::uint64_t what);

  struct Words {
    Name memory, alloc, free, map, unmap, import, retain;
    std::array<Name, MEMORY_KINDS> kinds;
  };
  Words words_;
  Listener& listener_;
  std::unordered_map<std::uint64_t, OfProcess> processes_;  // by their numbers
  std::uint64_t allocations_ = 0;
  std::map<Thread, std::vector<Nested>> nested_;
};

}  // namespace cudabpf::analyze
