// The tables of a file by which frames of its code are unwound. The file may be hostile: what it
// says is checked where it is used (cudabpf/unwind.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cudabpf/unwind.h"
#include "util/elf/elf.hpp"

namespace cudabpf {

class UnwindTables {
 public:
  // Nothing: the file has none, or is not a 64-bit ELF file.
  static std::optional<UnwindTables> read(const elf::Source& source);

  // The frame that called one whose code lies at this offset in the file. Its `ip` is that of the
  // process; false: it is not known.
  bool step(std::uint64_t offset, const unwind::cu_memory& stack, unwind::cu_frame& frame) const;

 private:
  struct Segment {
    std::uint64_t offset = 0, address = 0, size = 0;
  };

  std::vector<Segment> code_;
  std::vector<std::byte> bytes_;  // of the part that has the tables
  std::uint64_t address_ = 0;     // of its first byte
  std::uint64_t header_ = 0;      // the address of .eh_frame_hdr
};

}  // namespace cudabpf
