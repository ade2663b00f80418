// The live memory blocks of all processes, found by process and key, or all of a context or a
// process at once. A program may hold a million, so each takes as few bytes as possible: it stores
// its key once, and refers to its neighbours by 32-bit places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "cudabpf/memory_kind.hpp"

namespace cudabpf {

class BlockTable {
 public:
  using Place = std::uint32_t;
  static constexpr Place NONE = ~Place{0};
  static constexpr std::uint32_t MAX_FUNCTIONS = (1 << 29) - 1;

  struct Held {
    std::uint64_t key = 0, size = 0, since = 0, call = 0;
    std::uint64_t number =
        0;  // of the allocation; for VMM memory the key has it, and this is the handle
    std::uint32_t tid = 0;
    std::uint32_t function : 29 = 0;  // see MemoryCall
    MemoryKind kind : 3 = MemoryKind::device;
    std::uint32_t handles = 1, mappings = 0;  // that keep it
    std::uint32_t origin = 0;                 // see MemoryCall

   private:
    friend class BlockTable;
    Place group = NONE, next = NONE;  // next: among those with the same hash
    Place next_in_group = NONE, previous_in_group = NONE;
  };

  std::size_t size() const { return size_; }
  Place find(std::uint64_t process, std::uint64_t key) const;
  // Adds a block that is not there yet. Context 0: it ends with no context.
  Place add(std::uint64_t process, std::uint64_t context, const Held& held);
  void remove(Place place);
  Held& operator[](Place place) { return held_[place]; }
  const Held& operator[](Place place) const { return held_[place]; }
  std::uint64_t process_of(const Held& held) const { return groups_[held.group].process; }

  // In no particular order.
  std::vector<Place> of_context(std::uint64_t process, std::uint64_t context) const;
  std::vector<Place> of_process(std::uint64_t process) const;
  template <typename Visit>
  void each(Visit&& visit) const {
    for (const auto& [key, group] : group_of_)
      for (Place at = groups_[group].first; at != NONE; at = held_[at].next_in_group)
        visit(held_[at]);
  }

 private:
  // Blocks that end together.
  struct Group {
    std::uint64_t process = 0, context = 0;
    Place first = NONE;
  };

  std::size_t slot_of(std::uint64_t process, std::uint64_t key) const;
  Place group(std::uint64_t process, std::uint64_t context);
  void grow();

  std::deque<Held> held_;  // including free places, which no slot or group leads to
  std::vector<Place> free_;
  std::vector<Place> slots_ = std::vector<Place>(64, NONE);            // by hash: the first of each
  std::map<std::pair<std::uint64_t, std::uint64_t>, Place> group_of_;  // by process and context
  std::deque<Group> groups_;
  std::vector<Place> free_groups_;
  std::size_t size_ = 0;
};

static_assert(sizeof(BlockTable::Held) == 80);

}  // namespace cudabpf
