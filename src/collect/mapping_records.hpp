// What perf's records tell of mappings. Pure: the bytes come from the kernel, the names in them
// from anybody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collect/libraries.hpp"

namespace cudabpf {

// What was read of a perf buffer.
struct MappingsRead {
  std::vector<MappedLibrary> libraries;  // mapped files that are called libcuda.so*
  std::uint64_t unnamed = 0;             // records of which it is not known what they map
};

// Adds what the records between two positions tell. `data` is the buffer's part for records, whose
// size is a power of two; positions count on and wrap around in it.
void read_mapping_records(std::span<const std::byte> data, std::uint64_t tail, std::uint64_t head,
                          MappingsRead& read);

}  // namespace cudabpf
