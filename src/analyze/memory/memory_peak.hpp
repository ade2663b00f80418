// The most memory that was held at once, and what held it then. It needs no copy of what was live
// at each new maximum: what was live at the peak is either still live or has ended since.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analyze/memory/memory_part.hpp"
#include "state/live_memory.hpp"
#include "trace/read/names.hpp"

namespace cudabpf::analyze {

class MemoryPeak {
 public:
  static constexpr std::size_t LARGEST = 10;

  // Blocks that one function allocated and that are about the same size.
  struct Group {
    Name function;
    unsigned size_class = 0;  // at least 2^(n-1) bytes, and less than 2^n
    std::uint64_t bytes = 0, blocks = 0;
  };
  struct Holders {
    std::vector<Group> groups;               // the most bytes first
    std::vector<MemoryPart> files;           // whose code asked, likewise
    std::vector<LiveMemory::Block> largest;  // at most LARGEST
    std::uint64_t blocks = 0;
  };

  void allocated(const LiveMemory::Block& block);
  void ended(const LiveMemory::Block& block, Name holder);
  // Forgets the peaks until now: what is held is the most so far. `last`: the number of the block
  // that was allocated last.
  void begin_anew(std::uint64_t ts, std::uint64_t last);

  std::uint64_t held() const { return held_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t ts() const { return ts_; }

  // At the end: adds a block that is still live; then, once, what was live at the peak.
  void still_live(const LiveMemory::Block& block, Name holder) {
    if (was_live(block)) at_peak_.add(block, holder);
  }
  Holders take_holders() { return std::move(at_peak_).holders(); }
  // Adds the block if it is one of the `most` largest, which come first.
  static void keep_largest(std::vector<LiveMemory::Block>& largest, const LiveMemory::Block& block,
                           std::size_t most);

 private:
  // The trace names groups and files, so it bounds how many there are.
  struct Blocks {
    KeyedRows<std::uint64_t, Group> groups;
    MemoryParts files;
    std::vector<LiveMemory::Block> largest;
    std::uint64_t count = 0;

    void add(const LiveMemory::Block& block, Name holder);
    Holders holders() &&;
  };

  bool was_live(const LiveMemory::Block& block) const { return block.number <= number_; }

  std::uint64_t held_ = 0;
  std::uint64_t bytes_ = 0, ts_ = 0, number_ = 0;
  Blocks at_peak_;  // those that have ended since
};

std::string size_class_name(unsigned size_class);  // "4 to 8 MiB"

}  // namespace cudabpf::analyze
