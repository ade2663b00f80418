// How long the collectives on a GPU did nothing but wait for ranks that had not come. What there
// was to wait for is known from the other ranks' kernels, once the whole trace is.
#pragma once

#include <cstdint>
#include <map>

namespace cudabpf::analyze {

// From the beginning of a collective's kernel.
struct WaitForRank {
  std::uint64_t begin = 0, end = 0;
  std::uint32_t rank = 0;  // that came last
};

using TimeByRank = std::map<std::uint32_t, std::uint64_t>;  // ns
inline std::uint64_t time_waited(const TimeByRank& times) {
  std::uint64_t total = 0;
  for (auto [rank, time] : times) total += time;
  return total;
}

}  // namespace cudabpf::analyze
