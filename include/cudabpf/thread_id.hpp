// A thread is known by its process and its own id. The id alone would do if all ids came from the
// kernel; but a process recorded from inside writes its threads' ids itself, and may write those of
// another process.
#pragma once

#include <compare>
#include <cstdint>

#include "cudabpf/abi.h"

namespace cudabpf {

struct ThreadId {
  std::uint32_t pid = 0, tid = 0;

  // clang-tidy takes what the compiler writes for it for a 0 that should be nullptr.
  auto operator<=>(const ThreadId&) const = default;  // NOLINT(modernize-use-nullptr)
};

inline ThreadId thread_of(const abi::cb_head& head) { return {head.pid, head.tid}; }

}  // namespace cudabpf
