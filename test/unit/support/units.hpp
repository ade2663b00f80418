// Spans of time, in nanoseconds.
#pragma once

#include <cstdint>

inline constexpr std::uint64_t US = 1000, MS = 1'000'000, SECOND = 1'000'000'000;
