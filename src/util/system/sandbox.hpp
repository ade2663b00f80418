// What a process gives up before it touches bytes that it does not trust.
#pragma once

#include <chrono>
#include <cstdint>

namespace cudabpf::sandbox {

// Gives up all capabilities and every way to get one back. False: the kernel refuses.
bool drop_rights();

struct Limits {
  std::chrono::milliseconds cpu{400};  // user and system time
  std::chrono::seconds wall{3};        // for a slow machine or disk
  std::uint64_t memory = 256 << 20;
};

// A sanitizer's runtime reserves terabytes of address space and makes system calls that no rule
// foresees, so such builds, which are for tests, read without these two bounds.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool CONFINES = false;
#elif !defined(__has_feature)
inline constexpr bool CONFINES = true;
#elif __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool CONFINES = false;
#else
inline constexpr bool CONFINES = true;
#endif

// This process ends after the time that the limits give it, whatever it waits for.
bool bound_time(const Limits& limits);

// From here on this process, which must have no other threads, may only read `input` by pread,
// write to `output`, allocate memory and exit. Any other system call ends it, and so does the limit
// of memory.
bool enter(int input, int output, const Limits& limits);

}  // namespace cudabpf::sandbox
