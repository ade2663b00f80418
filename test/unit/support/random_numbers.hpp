#pragma once

#include <random>

// A number below that.
inline unsigned any(std::mt19937& random, unsigned below) {
  return static_cast<unsigned>(random() % below);
}
