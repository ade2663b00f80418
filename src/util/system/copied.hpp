// Memory that somebody else writes to meanwhile: what is read of it is copied once, and then looked
// at.
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
