// Sums and products of numbers that somebody else chose: what would be too large is the largest.
#pragma once

#include <concepts>
#include <limits>

namespace cudabpf {

template <std::unsigned_integral Number>
constexpr Number saturating_sum(Number a, Number b) {
  constexpr Number MOST = std::numeric_limits<Number>::max();
  return a > MOST - b ? MOST : static_cast<Number>(a + b);
}

template <std::unsigned_integral Number>
constexpr Number saturating_product(Number a, Number b) {
  constexpr Number MOST = std::numeric_limits<Number>::max();
  return b && a > MOST / b ? MOST : static_cast<Number>(a * b);
}

}  // namespace cudabpf
