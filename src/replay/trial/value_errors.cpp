#include "replay/trial/value_errors.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace cudabpf::replay {

namespace {

template <typename T>
T bytes_as(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

double half_of(std::uint16_t bits) {
  constexpr int FRACTION_BITS = 10, BIAS = 15;
  constexpr std::uint16_t EXPONENT = 0x1f, FRACTION = 0x3ff;
  int exponent = bits >> FRACTION_BITS & EXPONENT;
  double fraction = bits & FRACTION, sign = bits & 0x8000 ? -1 : 1;
  if (exponent == EXPONENT) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  // Those without an exponent are as small as those with the least, but begin with 0.
  return sign * std::ldexp(exponent ? fraction + (FRACTION + 1) : fraction,
                           std::max(exponent, 1) - BIAS - FRACTION_BITS);
}

void keep_larger(std::uint64_t& bits, double value) {
  bits = std::bit_cast<std::uint64_t>(std::max(number_of(bits), value));
}

void add_error(double expected, double got, ValueErrors& errors) {
  errors.values++;
  if (std::isnan(expected) != std::isnan(got)) errors.not_numbers++;
  if (std::isnan(expected) || std::isnan(got) || expected == got) return;
  double absolute = std::abs(got - expected);  // infinite, or no number, with an infinity
  if (std::isnan(absolute)) absolute = HUGE_VAL;
  keep_larger(errors.absolute, absolute);
  if (expected != 0)
    keep_larger(errors.relative, std::isinf(expected) ? HUGE_VAL : absolute / std::abs(expected));
  keep_larger(errors.scaled,
              std::isinf(expected) ? HUGE_VAL : absolute / std::max(1.0, std::abs(expected)));
}

}  // namespace

double value_of(const char* bytes, ValueType type) {
  constexpr int HALF_OF_F32 = 16;
  switch (type) {
    case ValueType::f32:
      return static_cast<double>(bytes_as<float>(bytes));
    case ValueType::f16:
      return half_of(bytes_as<std::uint16_t>(bytes));
    case ValueType::bf16:
      return static_cast<double>(std::bit_cast<float>(
          static_cast<std::uint32_t>(bytes_as<std::uint16_t>(bytes)) << HALF_OF_F32));
    case ValueType::f64:
      break;
  }
  return bytes_as<double>(bytes);
}

void add_errors(ValueType type, std::uint64_t address, std::string_view expected,
                std::string_view got, ValueErrors& errors) {
  std::size_t size = size_of(type);
  for (std::size_t at = (size - address % size) % size; at + size <= expected.size(); at += size)
    if (std::memcmp(expected.data() + at, got.data() + at, size) != 0)
      add_error(value_of(expected.data() + at, type), value_of(got.data() + at, type), errors);
}

void add_errors(const ValueErrors& more, ValueErrors& errors) {
  errors.values = std::max(errors.values, more.values);
  errors.not_numbers = std::max(errors.not_numbers, more.not_numbers);
  keep_larger(errors.absolute, number_of(more.absolute));
  keep_larger(errors.relative, number_of(more.relative));
  keep_larger(errors.scaled, number_of(more.scaled));
}

bool is_within(const ValueErrors& errors, double tolerance) {
  return !errors.not_numbers && number_of(errors.scaled) <= tolerance;
}

}  // namespace cudabpf::replay
