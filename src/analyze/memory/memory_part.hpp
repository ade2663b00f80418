// How much memory each of several has: processes, holders, lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "trace/read/names.hpp"
#include "util/keyed_rows.hpp"

namespace cudabpf::analyze {

struct MemoryPart {
  std::uint32_t pid = 0;  // of a process
  Name name;              // of the process, the holder or the line; none: it is not known
  std::uint64_t bytes = 0, blocks = 0;

  void add(std::uint64_t size) { bytes += size, blocks++; }
  // The most bytes first.
  bool operator<(const MemoryPart& other) const {
    return std::tuple(other.bytes, pid, name.id) < std::tuple(bytes, other.pid, other.name.id);
  }
};

// By pid or by name.
using MemoryParts = KeyedRows<std::uint32_t, MemoryPart>;

// ": 70 GiB by libtorch_cuda.so, 4 GiB by libnccl.so.2", the biggest few of those that come sorted.
std::string biggest_text(const std::vector<MemoryPart>& parts, const Names& names);

}  // namespace cudabpf::analyze
