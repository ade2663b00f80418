// The blocks that PyTorch's allocator gives to tensors, beside what it has reserved for them: what
// is allocated of that, and what is not, because it is cached, too small, or was rounded up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "analyze/memory/traced_memory.hpp"
#include "trace/read/line.hpp"
#include "trace/read/part.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class Blocks {
 public:
  struct Level {
    std::uint64_t ts = 0, allocated = 0, reserved = 0, blocks = 0;
    std::uint64_t unused() const { return reserved > allocated ? reserved - allocated : 0; }
  };
  struct Levels {
    Level now;  // and when its process or the part ended
    Level most_allocated, most_reserved, most_unused;
    void allocate(std::uint64_t size, std::uint64_t ts);
    void free(std::uint64_t size, std::uint64_t ts);
    void reserve(std::uint64_t size, std::uint64_t ts);
    void release(std::uint64_t size, std::uint64_t ts);
    void begin_anew(std::uint64_t ts);

   private:
    void reserved_more(std::uint64_t ts);  // for a block that follows
    void changed(std::uint64_t ts);
  };
  // What one process has on one GPU.
  struct Allocator {
    std::uint64_t process = 0;  // its number
    std::uint32_t pid = 0;
    Name comm;
    std::int64_t gpu = 0;
    std::uint64_t allocations = 0, frees = 0;  // of blocks
    bool asked = false;     // the allocator's own code was seen to reserve memory
    Levels of_own, of_all;  // reserved: what that code asked for, or all of the process
    const Levels& levels() const { return asked ? of_own : of_all; }
    bool any() const { return allocations || levels().most_allocated.blocks; }
  };
  // The blocks of one place of the program.
  struct OfPlace {
    const RangePlace* place = nullptr;  // null: none, or of all that found no room
    bool others = false;
    std::uint64_t allocations = 0, allocated = 0, frees = 0, held = 0, peak = 0;
  };

  Blocks(Names& names, Part part, bool by_place);

  void line(const Line& line);
  // GPU memory of the driver's.
  void reserved(const LiveMemory::Block& block, const MemoryOrigin& origin);
  void released(const LiveMemory::Block& block, const MemoryOrigin& origin, std::uint64_t ts);
  void finish();

  bool any() const { return seen_; }
  // Null: it is not known. As it is now.
  const Allocator* of(std::uint64_t process, std::int64_t gpu) const;
  // Those of a process; and those of all processes that have not gone.
  template <typename Visit>
  void each_of(std::uint64_t process, Visit&& visit) const {
    if (auto of = processes_.find(process); of != processes_.end())
      for (const auto& [gpu, at] : of->second.allocators) visit(allocators_[at]);
  }
  template <typename Visit>
  void each(Visit&& visit) const {
    for (const Allocator& one : allocators_)
      if (of(one.process, one.gpu) == &one) visit(one);
  }
  const std::vector<Allocator>& allocators() const { return allocators_; }  // the largest first
  const std::vector<OfPlace>& places() const { return places_; }            // likewise
  // Frees of blocks that were allocated before the trace, or whose allocation was lost.
  std::uint64_t unknown_frees() const { return unknown_frees_; }
  std::uint64_t replaced() const { return replaced_; }  // blocks whose frees were lost
  std::uint64_t left_out() const { return left_out_; }  // that found no room

 private:
  static constexpr std::size_t MAX = std::size_t{1} << 20;  // blocks at once, of all processes
  static constexpr std::size_t MAX_ALLOCATORS = 4096, MAX_PLACES = 256;
  static constexpr std::size_t NO_PLACE = MAX_PLACES + 1;

  struct Held {
    std::uint64_t size = 0;
    std::uint32_t allocator = 0, place = 0;
  };
  struct OfProcess {
    HashMap<std::uint64_t, Held> blocks;             // by address
    std::map<std::int64_t, std::size_t> allocators;  // by GPU
  };

  bool follows(std::uint64_t ts);
  std::optional<std::size_t> number_of(std::uint64_t process, std::int64_t gpu) const;
  Allocator* allocator_of(std::uint64_t process, std::uint32_t pid, std::int64_t gpu);
  std::size_t place_of(const Line& line);
  void allocated(const Line& line);
  void freed(const Line& line);
  void end(OfProcess& of, HashMap<std::uint64_t, Held>::iterator block, std::uint64_t ts);

  Part part_;
  bool by_place_;
  Name holder_;  // the allocator's own file
  bool begun_, seen_ = false;
  std::size_t held_ = 0;
  HashMap<std::uint64_t, OfProcess> processes_;  // by number
  std::vector<Allocator> allocators_;
  std::vector<OfPlace> places_;
  HashMap<std::uint64_t, std::size_t> place_numbers_;
  std::uint64_t unknown_frees_ = 0, replaced_ = 0, left_out_ = 0;
};

}  // namespace cudabpf::analyze
