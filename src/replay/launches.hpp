// The launches of a tape that differ in their kernel, their grid, their blocks, their shared memory
// or their parameters, addresses aside: a convolution's sizes may be among these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/tape.hpp"

namespace cudabpf::replay {

struct DistinctLaunch {
  std::uint32_t kernel = 0;
  bundle::Dim grid{}, block{};
  std::uint32_t shared = 0;
  std::uint64_t count = 0;
  std::size_t first = 0;  // step
  std::string refused;    // why none of them is run; empty: they are
};

// In the order of their first steps; `of_steps`, if given, gets the place of each step's launch in
// what is returned, or NONE.
inline constexpr std::uint32_t NONE = ~std::uint32_t{0};
std::vector<DistinctLaunch> distinct_launches(const Tape& tape, const Manifest& manifest,
                                              std::vector<std::uint32_t>* of_steps = nullptr);

}  // namespace cudabpf::replay
