// Reads mappings from perf's records. Pure: the bytes come from the kernel, but any process may
// have chosen the names in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collect/libraries.hpp"

namespace cudabpf {

// A part of a file that a process may execute from now on.
struct MappedCode {
  std::uint64_t ts = 0;  // CLOCK_MONOTONIC
  std::uint32_t pid = 0;
  std::uint64_t from = 0, to = 0;
  std::uint64_t offset = 0;  // in the file
  std::uint64_t device = 0;  // as the kernel reports it for mappings: see FileId
  std::uint64_t inode = 0;
  std::string path;  // as the process's own mount namespace names it; "//anon": no file
};

// What was read from a perf buffer.
struct MappingsRead {
  std::vector<MappedLibrary> libraries;  // mapped files with names of traced libraries
  std::vector<std::uint32_t> begun;      // processes whose program is being loaded: they map a libc
  std::uint64_t unnamed = 0;             // records that do not say what they map
  std::vector<MappedCode> code;          // the first MAX_CODE, in each buffer's order
  bool code_lost = false;                // or there were more
  static constexpr std::size_t MAX_CODE = 1 << 16;
};

// Adds what the records between two positions say. `data` is the part of the buffer that holds
// records; its size is a power of two, and positions, which only grow, wrap around in it.
void read_mapping_records(std::span<const std::byte> data, std::uint64_t tail, std::uint64_t head,
                          MappingsRead& read);

}  // namespace cudabpf
