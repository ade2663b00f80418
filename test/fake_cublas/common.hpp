// What the simulated cuBLAS and cuBLASLt share.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace fake_cublas {

using DevicePtr = uint64_t;
using Handle = void*;
using Words =
    std::map<std::string_view, uint64_t>;  // what a call was given, by its arguments' names

enum : uint32_t { SUCCESS = 0, INVALID_VALUE = 7, EXECUTION_FAILED = 13 };

// Does what the function does, and logs the call.
uint32_t called(const char* symbol, const Words& words);
// What it does: each of the two libraries has its own.
uint32_t does(std::string_view symbol, const Words& words);

// A kernel for a product of m x n, in tiles of 128 x 128.
uint32_t launch(uint64_t m, uint64_t n, uint64_t batch, uint64_t stream);

inline uint64_t word(uint32_t value) { return value; }
inline uint64_t word(int32_t value) { return static_cast<uint32_t>(value); }
inline uint64_t word(uint64_t value) { return value; }
inline uint64_t word(const void* value) { return reinterpret_cast<uint64_t>(value); }

}  // namespace fake_cublas
