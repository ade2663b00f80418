// Addresses of live memory in bytes that may hold any: parameters of launches, tables in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "replay/kernel_messages.hpp"
#include "replay/ranges.hpp"
#include "replay/tape.hpp"

namespace cudabpf::replay {

// The program's memory at one place of its tape.
class LiveBlocks {
 public:
  // Before this step.
  LiveBlocks(const Manifest& manifest, const Tape& tape, std::size_t step);

  // In the order of their addresses.
  const std::vector<bundle::Block>& all() const { return blocks_; }
  // The one that has the address; nothing: none has it.
  std::optional<std::size_t> at(std::uint64_t address) const;

 private:
  std::vector<bundle::Block> blocks_;
};

struct FoundPointer {
  std::size_t offset = 0;  // in the bytes
  std::uint64_t to = 0;
  std::size_t block = 0;  // of the live ones
};

// Words of 8 bytes, at multiples of 8 from the first. Structs may be packed: words in between
// are looked at, too, unless `only_aligned`.
std::vector<FoundPointer> pointers_in(std::string_view bytes, const LiveBlocks& live,
                                      bool only_aligned);

}  // namespace cudabpf::replay
