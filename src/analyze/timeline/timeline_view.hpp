// The part of a trace that is drawn if none was given: from the first call to the last, without
// long times without calls of CUDA. Where inference is less than half of that, it is drawn by
// itself, below a line that shows the whole.
#pragma once

#include <vector>

#include "analyze/timeline/timeline.hpp"
#include "util/page/time_scale.hpp"

namespace cudabpf::analyze {

struct TimelineView {
  std::vector<TimeSpan> shown;  // what all lanes show; between two of them, time is folded
  std::vector<TimeSpan> whole;  // what an overview above them shows; empty: there is none
};
// For a picture `width` characters wide; each fold leaves room for what it parts.
TimelineView view_of(const Timeline& timeline, std::size_t width = 160);

// `all` without the longest of `blanks` inside of it: each is longer than a twentieth of what is
// shown up to then.
inline constexpr std::size_t MAX_FOLDS = 8;
std::vector<TimeSpan> folded(TimeSpan all, std::vector<TimeSpan> blanks,
                             std::size_t most = MAX_FOLDS);

// "Skipped (no CUDA calls): 9.95 s at 4.926760 s, ..."; how to see everything. Where it is
// known what GPUs did, none of them worked then.
std::string note_of_view(const Timeline& timeline, const TimelineView& view,
                         const Moments& moments);

// The windows among the phases that the trace shows.
std::vector<const Phase*> windows(const Phases& phases);

// --- what lies in each column of a picture

std::vector<Timeline::Busy> busy_columns(const Timeline::OfThread& thread, const TimeScale& scale);
std::vector<Timeline::Busy> busy_columns(const QueueBars& queue, const TimeScale& scale);
// How many calls there are in each.
std::vector<std::uint64_t> count_columns(const BarRow& row, const TimeScale& scale);

}  // namespace cudabpf::analyze
