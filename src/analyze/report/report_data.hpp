// A report's timeline as bytes, for its page: the size of a JSON object in four bytes, the lowest
// first; the object, which says what there is; and columns of packed numbers, one after the other,
// of all events, lane by lane. web/src/data/timeline.ts reads it.
#pragma once

#include <string>

#include "analyze/iterations/execution.hpp"
#include "analyze/report/report_timeline.hpp"

namespace cudabpf::analyze {

// `execution`: whose iterations the timeline has; null: it has none.
std::string timeline_data(const ReportTimeline& timeline, const Execution* execution = nullptr);

}  // namespace cudabpf::analyze
