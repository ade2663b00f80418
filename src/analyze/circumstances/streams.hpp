// Which stream a call is about. Handles are a process's, and the default streams, which all have
// the same few, a context's or even a thread's.
#pragma once

#include <cstdint>
#include <functional>

#include "analyze/trace/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

// Streams that are named by these numbers in every process.
inline constexpr std::uint64_t DEFAULT_STREAM = 0;
inline constexpr std::uint64_t LEGACY_STREAM = 1;      // the default stream by its other name
inline constexpr std::uint64_t PER_THREAD_STREAM = 2;  // the default stream that each thread has

struct StreamKey {
  std::uint64_t process = 0;  // its number
  std::uint64_t handle = 0;
  std::uint64_t context = 0;  // of a default stream, where that is known
  std::uint32_t tid = 0;      // of the default stream that each thread has
  bool operator==(const StreamKey&) const = default;
};

// Needs what Circumstances tell of the line.
StreamKey stream_of(const Line& line);

struct StreamHash {
  std::size_t operator()(const StreamKey& key) const {
    return mixed(mixed(mixed(key.process, key.handle), key.context), key.tid);
  }
};

}  // namespace cudabpf::analyze
