// The part of a trace that an answer is about: a stretch of its time, and certain ranges of the
// program's own. A call is part of the stretch in which it began.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "trace/read/line.hpp"

namespace cudabpf::analyze {

struct Part {
  static constexpr std::uint64_t OPEN = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t from = 0, to = OPEN;  // ns since the trace began; `to` is not in it
  // The files begin at this time: a part that does not say when it begins has calls that began
  // before, but their time before is in no figure.
  std::uint64_t recorded_from = 0;

  bool of_ranges = false;  // only calls, and what GPUs did for them, that are in wanted ranges

  bool is_whole() const { return !from && to == OPEN && !of_ranges; }
  bool has(std::uint64_t ts) const { return ts >= from && ts < to; }
  // A file's header and its end are about the trace, whatever part of it is wanted.
  bool has(const Line& line) const {
    return line.kind == LineKind::header || line.kind == LineKind::end ||
           (line.wanted && has(line.ts));
  }
  // Whether it overlaps this time.
  bool touches(std::uint64_t begin, std::uint64_t end) const {
    return begin < to && (end > from || (begin == end && begin >= from));
  }
  std::uint64_t clipped(std::uint64_t ts) const {
    return std::clamp(ts, std::max(from, recorded_from), std::max(to, recorded_from));
  }
};

}  // namespace cudabpf::analyze
