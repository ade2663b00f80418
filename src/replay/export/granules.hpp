// Memory in small parts, to find which of them change.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "replay/ranges.hpp"

namespace cudabpf::replay {

inline constexpr std::uint64_t GRANULE = 4096;

// A number that differs if the bytes do, but for a chance that is none: memory may be too large to
// be kept twice.
std::uint64_t fingerprint_of(std::string_view bytes);

// Where two contents of a range differ, in whole values of 8 bytes; with fewer and larger ranges if
// there are too many.
std::vector<Range> differences_between(std::string_view a, std::string_view b, const Range& range);

}  // namespace cudabpf::replay
