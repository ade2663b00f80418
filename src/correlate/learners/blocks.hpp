// Blocks of memory, ordered by address. A process may have a million: they are stored contiguously
// in chunks, so that one takes 24 bytes, or 64 at most if chunks are half empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace cudabpf {

struct Block {
  enum class Side : std::uint8_t { host, device, either };  // either: managed memory
  static constexpr std::int16_t NO_DEVICE = -1;

  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint32_t losses = 0;  // the process's losses when it was allocated
  std::int16_t device = NO_DEVICE;
  Side side : 2 = Side::device;
  bool doubtful : 1 = false;  // it may be gone; a later free proves that it was not
  bool going : 1 = false;     // a free of it is under way
};
static_assert(sizeof(Block) == 24);

class Blocks {
 public:
  // The block that contains an address, or that begins there; null if there is none.
  const Block* containing(std::uint64_t address) const;
  Block* at(std::uint64_t address);
  std::size_t size() const { return size_; }
  std::size_t bytes() const;  // memory that they take

  // No other block may overlap it.
  void insert(const Block& block);
  void erase(std::uint64_t address);
  // Removes every block that overlaps these bytes, and passes it to `gone` first.
  template <typename Gone>
  void erase_overlapping(std::uint64_t address, std::uint64_t size, Gone&& gone) {
    while (const Block* block = overlapping(address, size)) {
      gone(*block);
      erase(block->address);
    }
  }
  template <typename Visit>
  void each(Visit&& visit) {
    for (auto& chunk : chunks_)
      for (Block& block : chunk) visit(block);
  }

 private:
  static constexpr std::size_t CHUNK = 256;
  using Chunk = std::vector<Block>;
  struct Place {
    std::size_t chunk, index;
  };

  // The place of the last block that begins at or before the address.
  std::optional<Place> place_of(std::uint64_t address) const;
  const Block* overlapping(std::uint64_t address, std::uint64_t size) const;
  void split(std::size_t chunk, bool at_end);
  void join(std::size_t left);

  std::vector<Chunk> chunks_;          // none is empty
  std::vector<std::uint64_t> firsts_;  // each one's first address; contiguous for searching
  std::size_t size_ = 0;
};

}  // namespace cudabpf
