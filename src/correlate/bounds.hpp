// Limits how much is kept of what traced programs can make without end: addresses, handles, names,
// calls that never return. What there is no room for is counted and unknown from then on; what the
// trace says stays true.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cudabpf {

enum class Table : std::uint8_t {
  memory,          // allocated blocks
  kernel_handles,  // with known names
  kernel_names,    // distinct ones
  name_bytes,
  contexts,  // and streams, with a known device
  threads,   // with calls or contexts of their own
  open_calls,
  open_operations,  // on the driver's devices
  driver_objects,
  count_
};
constexpr std::size_t TABLES = static_cast<std::size_t>(Table::count_);

constexpr std::string_view to_string(Table table) {
  constexpr std::array<std::string_view, TABLES> NAMES = {
      "memory",  "kernel handles", "kernel names",    "kernel names",  "contexts",
      "threads", "open calls",     "open operations", "driver objects"};
  return NAMES[static_cast<std::size_t>(table)];
}

struct Limits {
  // docs/limits.md says how many bytes these take.
  std::array<std::size_t, TABLES> most = {1 << 20, 1 << 18, 1 << 16, 32 << 20, 1 << 16,
                                          1 << 14, 1 << 14, 1 << 14, 1 << 16};
  std::size_t& of(Table table) { return most[static_cast<std::size_t>(table)]; }
};

class Bounds {
 public:
  explicit Bounds(const Limits& limits) : limits_(limits) {}

  bool has_room(Table table, std::size_t used) const {
    return used < limits_.most[static_cast<std::size_t>(table)];
  }
  void left_out(Table table, std::uint64_t count = 1) {
    left_out_[static_cast<std::size_t>(table)] += count;
  }
  std::uint64_t all_left_out(Table table) const {
    return left_out_[static_cast<std::size_t>(table)];
  }

 private:
  Limits limits_;
  std::array<std::uint64_t, TABLES> left_out_{};
};

// The process with the largest part of a full table: it has to make room.
template <typename Processes>
auto& largest_of(Processes& processes) {
  return std::max_element(
             processes.begin(), processes.end(),
             [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); })
      ->second;
}

}  // namespace cudabpf
