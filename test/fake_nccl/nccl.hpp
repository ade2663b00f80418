// What every function of the simulated NCCL does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fake_nccl {

using DevicePtr = uint64_t;
using Handle = void*;

template <int N>
struct Bytes {  // a struct passed by value on the stack
  unsigned char bytes[N];
};

struct Out {
  void* to;
  size_t size;
};

// Does what the function does, and logs the call: `words` are its integer and pointer arguments,
// `id` is the identity of a communicator.
uint32_t called(const char* symbol, const std::vector<uint64_t>& words,
                const std::vector<Out>& outs, const std::string& id);

std::string hex(const Bytes<128>& id);

inline uint64_t word(uint32_t value) { return value; }
inline uint64_t word(int32_t value) { return static_cast<uint32_t>(value); }
inline uint64_t word(uint64_t value) { return value; }
inline uint64_t word(const void* value) { return reinterpret_cast<uint64_t>(value); }

}  // namespace fake_nccl
