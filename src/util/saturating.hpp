// Sums and products of untrusted numbers: a result that would be too large becomes the largest
// number, and a difference below zero becomes zero.
#pragma once

#include <concepts>
#include <limits>

namespace cudabpf {

template <std::unsigned_integral Number>
constexpr Number saturating_sum(Number a, Number b) {
  constexpr Number LARGEST = std::numeric_limits<Number>::max();
  return a > LARGEST - b ? LARGEST : static_cast<Number>(a + b);
}

template <std::unsigned_integral Number>
constexpr Number saturating_product(Number a, Number b) {
  constexpr Number LARGEST = std::numeric_limits<Number>::max();
  return b && a > LARGEST / b ? LARGEST : static_cast<Number>(a * b);
}

// By how much a sum has grown. Sums do not shrink; if one does, the figure must not become absurd.
template <std::unsigned_integral Number>
constexpr Number grown(Number now, Number before) {
  return now > before ? static_cast<Number>(now - before) : Number{0};
}

}  // namespace cudabpf
