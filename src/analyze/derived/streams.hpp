// Which stream a call is about. Handles belong to a process. The default streams, whose handles are
// the same everywhere, belong to a context or even a thread.
#pragma once

#include <cstdint>
#include <functional>

#include "trace/read/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

// Streams that have the same handle in every process.
inline constexpr std::uint64_t DEFAULT_STREAM = 0;
inline constexpr std::uint64_t LEGACY_STREAM = 1;      // the default stream by another handle
inline constexpr std::uint64_t PER_THREAD_STREAM = 2;  // each thread's own default stream

struct StreamKey {
  std::uint64_t process = 0;  // its number
  std::uint64_t handle = 0;
  std::uint64_t context = 0;  // of a default stream, if known
  std::uint32_t tid = 0;      // of a per-thread default stream
  bool operator==(const StreamKey&) const = default;
};

// Needs what DerivedFields filled in.
StreamKey stream_of(const Line& line);

struct StreamHash {
  std::size_t operator()(const StreamKey& key) const {
    return hash_of(key.process, key.handle, key.context, key.tid);
  }
};

}  // namespace cudabpf::analyze
