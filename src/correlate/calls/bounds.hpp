// Limits how much is kept of what traced programs can make without end: addresses, handles, names,
// calls that never return. Entries beyond a limit are counted, and unknown from then on; what the
// trace says stays true.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace cudabpf {

enum class Kept : std::uint8_t {
  memory,          // allocated blocks
  kernel_handles,  // with known names
  kernel_names,    // distinct ones
  name_bytes,
  contexts,  // and streams, with a known device
  threads,   // with calls or contexts of their own
  open_calls,
  open_operations,  // on the driver's devices
  driver_objects,
  graph_nodes,     // and graphs, and executable graphs
  blas_handles,    // of which calls have shown the stream
  communicators,   // and the pairs of ranks in them
  ranges,          // open ones, and the names of all
  stacks,          // of Python, the functions in them, and what processes call them
  gpu_operations,  // that wait for their issuing calls, and calls that wait for their operations
  count_
};
constexpr std::size_t KEPT = static_cast<std::size_t>(Kept::count_);

constexpr std::string_view to_string(Kept what) {
  constexpr std::array<std::string_view, KEPT> NAMES = {
      "memory",         "kernel handles", "kernel names",      "kernel names",
      "contexts",       "threads",        "open calls",        "open operations",
      "driver objects", "graph nodes",    "handles of cuBLAS", "communicators",
      "ranges",         "Python stacks",  "GPU operations"};
  return NAMES[static_cast<std::size_t>(what)];
}

struct Limits {
  // docs/limits.md says how many bytes these take.
  std::array<std::size_t, KEPT> most = {1 << 20, 1 << 18, 1 << 16, 32 << 20, 1 << 16,
                                        1 << 14, 1 << 14, 1 << 14, 1 << 16,  1 << 17,
                                        1 << 14, 1 << 16, 1 << 15, 1 << 15,  1 << 19};
  std::size_t& of(Kept what) { return most[static_cast<std::size_t>(what)]; }
};

class Bounds {
 public:
  explicit Bounds(const Limits& limits) : limits_(limits) {}

  bool has_memory(Kept what, std::size_t used) const { return used < limit(what); }
  std::size_t limit(Kept what) const { return limits_.most[static_cast<std::size_t>(what)]; }
  void left_out(Kept what, std::uint64_t count = 1) {
    left_out_[static_cast<std::size_t>(what)] += count;
  }
  std::uint64_t all_left_out(Kept what) const { return left_out_[static_cast<std::size_t>(what)]; }

 private:
  Limits limits_;
  std::array<std::uint64_t, KEPT> left_out_{};
};

// The process with the largest part of a full table: it has to make room. If several have it, the
// first in the table's arbitrary order.
template <typename Processes>
auto& largest_of(Processes& processes) {
  return std::max_element(processes.begin(), processes.end(),
                          [](const auto& a, const auto& b) {
                            return std::pair(a.second.size(), b.first) <
                                   std::pair(b.second.size(), a.first);
                          })
      ->second;
}

}  // namespace cudabpf
