// Reads mappings from perf's records. Pure: the bytes come from the kernel, but any process may
// have chosen the names in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collect/libraries.hpp"

namespace cudabpf {

// What was read from a perf buffer.
struct MappingsRead {
  std::vector<MappedLibrary> libraries;  // mapped files with names of traced libraries
  std::vector<std::uint32_t> begun;      // processes whose program is being loaded: they map a libc
  std::uint64_t unnamed = 0;             // records that do not say what they map
};

// Adds what the records between two positions say. `data` is the part of the buffer that holds
// records; its size is a power of two, and positions, which only grow, wrap around in it.
void read_mapping_records(std::span<const std::byte> data, std::uint64_t tail, std::uint64_t head,
                          MappingsRead& read);

}  // namespace cudabpf
