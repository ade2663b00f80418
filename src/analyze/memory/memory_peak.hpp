// The most memory that was held at once, and what held it then. It needs no copy of what was live
// at each new maximum: what was live at the peak is either still live or has ended since.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

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
  // Blocks that one file's code asked for; none: it is not known.
  struct Asked {
    Name holder;
    std::uint64_t bytes = 0, blocks = 0;
  };
  struct Holders {
    std::vector<Group> groups;               // the most bytes first
    std::vector<Asked> asked;                // likewise
    std::vector<LiveMemory::Block> largest;  // at most LARGEST
    std::uint64_t blocks = 0;
    // Where groups and files are, until they are sorted. Both are named in the trace, so it bounds
    // how many there are.
    std::unordered_map<std::uint64_t, std::size_t> group_at, asked_at;
  };

  void allocated(const LiveMemory::Block& block);
  void ended(const LiveMemory::Block& block, Name holder);
  // Forgets the peaks until now: what is held is the most so far. `last`: the number of the block
  // that was allocated last.
  void begin_anew(std::uint64_t ts, std::uint64_t last);

  std::uint64_t held() const { return held_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t ts() const { return ts_; }
  bool was_live(const LiveMemory::Block& block) const { return block.number <= number_; }

  // Blocks of the peak that have ended since; the caller adds those still live.
  const Holders& ended_since() const { return ended_since_; }
  static void add(Holders& to, const LiveMemory::Block& block, Name holder);
  static void sort(Holders& holders);
  // Adds the block if it is one of the `most` largest, which come first.
  static void keep_largest(std::vector<LiveMemory::Block>& largest, const LiveMemory::Block& block,
                           std::size_t most);

 private:
  std::uint64_t held_ = 0;
  std::uint64_t bytes_ = 0, ts_ = 0, number_ = 0;
  Holders ended_since_;
};

std::string size_class_name(unsigned size_class);  // "4 to 8 MiB"

}  // namespace cudabpf::analyze
