// Follows memory from its allocation to its end: a free, another allocation at its address, or the
// end of its context or process. The summary of a run and the analyses of a trace both use it, so
// that they cannot disagree.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cudabpf/meaning.hpp"
#include "cudabpf/memory_kind.hpp"
#include "state/block_table.hpp"
#include "util/hash.hpp"

namespace cudabpf {

// Whether LiveMemory needs calls that do this: mappings only of memory that has a handle.
constexpr bool concerns_live_memory(MemoryEffect effect, MemoryKind kind) {
  switch (effect) {
    case MemoryEffect::none:
    case MemoryEffect::register_:
    case MemoryEffect::unregister:
      return false;
    case MemoryEffect::map:
    case MemoryEffect::unmap:
      return kind == MemoryKind::vmm;
    default:
      return true;
  }
}

// A call about memory that succeeded.
struct MemoryCall {
  MemoryEffect does = MemoryEffect::alloc;
  MemoryKind kind = MemoryKind::device;  // VMM memory is known by its handle, other by its address
  bool entry_lost = false;               // it is not known when it began
  std::uint64_t process = 0;             // its number
  std::uint32_t pid = 0, tid = 0;
  std::uint32_t function = 0;  // the listener's number for it; less than 2^29
  std::uint32_t origin = 0;    // the listener's number for whose code asked, where, on which GPU
  std::uint64_t id = 0, parent = 0;
  std::uint64_t ts = 0, end = 0;
  std::uint64_t context = 0;  // current on its thread; 0: not known
  std::optional<std::uint64_t> ptr, handle, size;
};

class LiveMemory {
 public:
  struct Block {
    std::uint64_t process = 0;       // the number of the process that has it
    std::uint32_t pid = 0, tid = 0;  // the thread that allocated it
    MemoryKind kind = MemoryKind::device;
    std::uint32_t function = 0;  // as its call has it
    std::uint32_t origin = 0;    // likewise
    std::uint64_t address = 0;   // for VMM memory, its handle
    std::uint64_t size = 0;
    std::uint64_t since = 0;   // ns: when the allocation returned
    std::uint64_t call = 0;    // its id
    std::uint64_t number = 0;  // counts successful allocations from 1, in the order of their lines
  };
  // Blocks that found no room: far more than a program has at once, but a trace may claim anything.
  struct LeftOut {
    std::uint64_t blocks = 0, bytes = 0;  // allocations not followed
    std::uint64_t mappings = 0;  // of followed blocks, which may then seem to end too early
    bool any() const { return blocks || mappings; }
    void add(const LeftOut& other);
  };
  enum class Ended : std::uint8_t {
    freed,
    replaced,  // its address was allocated again: its free was not seen, or returned late
    with_context,
    with_process,
  };
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void allocated(const Block& block) = 0;
    virtual void ended(const Block& block, std::uint64_t ts, Ended how) = 0;
    // A free succeeded, but no allocation in the trace returned that memory. (Freeing null is
    // legal, and not reported.)
    virtual void freed_unknown(const MemoryCall& free) = 0;
  };

  // At most this many blocks, mappings and imported handles are followed at once, in all processes.
  static constexpr std::size_t MAX = 1 << 20;

  explicit LiveMemory(Listener& listener, std::size_t most = MAX)
      : listener_(listener), most_(most) {}
  LiveMemory(const LiveMemory&) = delete;
  LiveMemory& operator=(const LiveMemory&) = delete;

  void call(const MemoryCall& call);
  // A call that no other call made has returned, of whatever kind.
  void outermost_returned(std::uint64_t process, std::uint32_t tid) {
    if (!nested_.empty()) nested_.erase({process, tid});
  }
  void context_gone(std::uint64_t process, std::uint64_t context, std::uint64_t ts);
  void process_gone(std::uint64_t process, std::uint64_t ts);

  // What is live now, in no particular order.
  template <typename Visit>
  void each(Visit&& visit) const {
    blocks_.each([&](const BlockTable::Held& held) { visit(block_of(held)); });
  }
  // Where VMM memory of a process is mapped now: the address, and the block. The same block may be
  // mapped at several addresses.
  template <typename Visit>
  void each_mapping(std::uint64_t process, Visit&& visit) const {
    auto of = processes_.find(process);
    if (of == processes_.end()) return;
    for (const auto& [address, place] : of->second.mappings)
      visit(address, block_of(blocks_[place]));
  }
  const LeftOut& left_out() const { return left_out_; }

 private:
  // Marks the key of VMM memory, which is known by its handle. A handle may be any number, and may
  // be reused while the memory is still mapped. Addresses never have the top bit.
  static constexpr std::uint64_t HANDLE = std::uint64_t{1} << 63;

  using Place = BlockTable::Place;
  // The table has ordinary memory by its address, and VMM memory by HANDLE and the number of its
  // allocation, for as long as its handle or one of its mappings exists.
  struct OfProcess {
    std::uint32_t pid = 0;
    HashMap<std::uint64_t, Place> handles;    // that the process holds
    std::map<std::uint64_t, Place> mappings;  // by address
    // Handles of memory that another process allocated: how often each is held.
    HashMap<std::uint64_t, std::uint32_t> imported;
    // Allocations that found no room: their frees will be of unknown memory.
    std::uint64_t left_out = 0;
  };
  using Thread = std::pair<std::uint64_t, std::uint32_t>;  // process number, thread
  // A call made inside another, which may do that one's work.
  struct Nested {
    std::uint64_t parent = 0, what = 0;
  };
  // At most this many are kept until their outer call comes: per thread, and threads.
  static constexpr std::size_t MAX_NESTED = 16, MAX_NESTING = 4096;

  void allocated_or_freed(OfProcess& process, const MemoryCall& call);
  bool has_memory() const { return blocks_.size() + others_ < most_; }
  void allocated(OfProcess& process, const MemoryCall& call);
  void freed(OfProcess& process, const MemoryCall& call);
  void freed_unknown(OfProcess& process, const MemoryCall& call);
  void imported(OfProcess& process, const MemoryCall& call);
  void forget_imported(OfProcess& process, std::uint64_t handle);
  void retained(OfProcess& process, const MemoryCall& call);
  void mapped(OfProcess& process, const MemoryCall& call);
  void unmapped(OfProcess& process, const MemoryCall& call);
  void end_if_unused(Place place, std::uint64_t ts, Ended how);
  void end(Place place, std::uint64_t ts, Ended how);
  void end_all(std::vector<Place> places, std::uint64_t ts, Ended how);
  Block block_of(const BlockTable::Held& held) const;

  bool was_done_inside(const MemoryCall& call, std::uint64_t what) const;
  void note_nested(const MemoryCall& call, std::uint64_t what);

  Listener& listener_;
  std::size_t most_;
  BlockTable blocks_;
  std::size_t others_ = 0;  // mappings and imported handles
  LeftOut left_out_;
  HashMap<std::uint64_t, OfProcess> processes_;  // by number
  std::uint64_t allocations_ = 0;
  std::map<Thread, std::vector<Nested>> nested_;
};

// "3 allocations of 1.20 GiB were not followed: …"
std::string text_of(const LiveMemory::LeftOut& left_out);

}  // namespace cudabpf
