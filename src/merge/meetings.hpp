// The collectives of a trace in which its ranks met others.
#pragma once

#include <cstddef>
#include <vector>

#include "merge/ahead.hpp"
#include "merge/survey.hpp"

namespace cudabpf::merge {

// In the order of their keys; at most this many: of more, those whose numbers are multiples of a
// power of two, so that ranks that leave some out keep the same ones. None, if the trace does not
// say how far its GPU times may be wrong.
inline constexpr std::size_t MAX_MEETINGS = 1 << 16;
Result<std::vector<Meeting>> meetings_of(const Surveyed& trace, std::size_t at_most = MAX_MEETINGS);

}  // namespace cudabpf::merge
