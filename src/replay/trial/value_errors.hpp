// How far numbers are from those expected.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "replay/kernel_messages.hpp"

namespace cudabpf::replay {

constexpr std::size_t size_of(ValueType type) {
  constexpr std::size_t SIZES[] = {4, 2, 2, 8};
  return SIZES[static_cast<std::size_t>(type)];
}

// The value of these bytes.
double value_of(const char* bytes, ValueType type);

// Adds what differs, if the bytes at this address are of the type; parts of values at the ends are
// passed over.
void add_errors(ValueType type, std::uint64_t address, std::string_view expected,
                std::string_view got, ValueErrors& errors);

// The most of both.
void add_errors(const ValueErrors& more, ValueErrors& errors);

inline double number_of(std::uint64_t bits) { return std::bit_cast<double>(bits); }

// Whether each value is as near as `tolerance` times the expected one, or as `tolerance` itself
// where that is less than 1.
bool is_within(const ValueErrors& errors, double tolerance);

}  // namespace cudabpf::replay
