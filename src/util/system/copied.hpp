// Memory that another process may be writing: each value is copied once, and only the copy is
// looked at.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

namespace cudabpf {

template <typename T>
T copied(const std::byte* from) {
  T copy;
  std::memcpy(&copy, from, sizeof(copy));
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return copy;
}

}  // namespace cudabpf
