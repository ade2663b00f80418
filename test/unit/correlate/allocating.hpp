// Allocates, frees and copies as a program does.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <string>

#include "correlating.hpp"

namespace samples {

inline constexpr std::uint64_t DEVICE_AT = 0x7f00'0000'0000, HOST_AT = 0x7e00'0000'0000;

inline void alloc(Correlating& c, std::uint64_t ptr, std::uint64_t size,
                  const char* symbol = "cuMemAlloc_v2") {
  c.call({}, symbol, {1, size, 0}, {ptr});
}

// The size that a free of `ptr` is said to have had; 0: none.
inline std::uint64_t freed(Correlating& c, std::uint64_t ptr, const char* symbol = "cuMemFree_v2",
                           int result = 0) {
  c.call({}, symbol, {ptr}, {}, result);
  return c.last().details.size.value_or(0);
}

inline std::string direction(Correlating& c, std::uint64_t dst, std::uint64_t src) {
  c.call({}, "cuMemcpy", {dst, src, 16});
  CHECK(c.last().details.dst == dst);
  CHECK(c.last().details.src == src);
  return std::string(to_string(c.last().details.op)) +
         (c.last().details.inferred_op ? " inferred" : "");
}

}  // namespace samples
