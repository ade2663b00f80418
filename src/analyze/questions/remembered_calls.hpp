// Calls that asked the GPU for something, until a trace tells when the GPU did it.
#pragma once

#include <cstdint>
#include <limits>

#include "analyze/calls_by_id.hpp"

namespace cudabpf::analyze {

struct RememberedCall {
  static constexpr std::size_t MOST = std::size_t{1} << 20;
  static constexpr std::uint32_t NO_PLACE = std::numeric_limits<std::uint32_t>::max();

  std::uint64_t id = 0;
  std::uint64_t ts = 0;
  // What its work did on the GPU so far, if it launched a graph; `begin` > `end`: nothing.
  std::uint64_t begin = std::numeric_limits<std::uint64_t>::max(), end = 0;
  std::uint32_t place = NO_PLACE;  // where it belongs, as who remembers it counts
  bool graph = false;
  bool wanted = true;  // it lies in the part of the trace that is wanted
};

using RememberedCalls = CallsById<RememberedCall>;

}  // namespace cudabpf::analyze
