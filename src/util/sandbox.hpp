// What a process gives up before it touches bytes that it does not trust.
#pragma once

#include <chrono>
#include <cstdint>

namespace cudabpf::sandbox {

// All capabilities, and every way to get one back. False: the kernel refuses.
bool drop_rights();

struct Limits {
  std::chrono::milliseconds cpu{400};  // of user and system time
  std::chrono::seconds wall{3};        // where the machine or the disk is slow
  std::uint64_t memory = 256 << 20;
};

// From here on this process, which must have no other threads, may read the file `input` by pread,
// write to `output`, have memory and exit. Any other system call ends it, and so do the limits.
bool enter(int input, int output, const Limits& limits);

}  // namespace cudabpf::sandbox
