// A moment of a trace as a user types it: a time since the trace began, or a time of day.
#pragma once

#include <cstdint>
#include <string>

#include "util/result.hpp"
#include "util/text/moments.hpp"

namespace cudabpf::cli {

// "1.5s", "200ms", "90", or "14:03:22.5", "2026-11-21 14:03", "2026-11-21T14:03:22Z",
// "14:03:22+01:00" -> ns since the trace began. Without a date, it is on the day on which the trace
// began; without a zone, in that of `moments`, which is refused if they have none. `flag` is what
// the error calls it.
Result<std::uint64_t> parse_moment(const std::string& text, const std::string& flag,
                                   const Moments& moments);

}  // namespace cudabpf::cli
