#include "analyze/report/report_events.hpp"

#include <algorithm>

#include "util/saturating.hpp"

namespace cudabpf::analyze {

bool ReportEvent::are_one(const ReportEvent& a, const ReportEvent& b, unsigned resolution) {
  constexpr unsigned SHORT = 2;  // in powers of two of the resolution
  return a.begin >> resolution == b.begin >> resolution &&
         (std::max(a.time(), b.time()) >> resolution) >> SHORT == 0;
}

void ReportEvent::absorb(const ReportEvent& next) {
  busy = saturating_sum(busy, next.busy);
  if (next.longest > longest) {
    longest = next.longest;
    kind = next.kind;
  }
  begin = std::min(begin, next.begin);
  end = std::max(end, next.end);
  count += next.count;
  details = 0;
  if (stream != next.stream) stream = 0;
}

}  // namespace cudabpf::analyze
