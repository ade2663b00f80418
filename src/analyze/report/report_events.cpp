#include "analyze/report/report_events.hpp"

#include <algorithm>
#include <tuple>

#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {

bool began_before(const ReportEvent& a, const ReportEvent& b) {
  return std::tuple(a.begin, b.end, a.id) < std::tuple(b.begin, a.end, b.id);
}

}  // namespace

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

bool ReportLane::are_one(const ReportEvent& a, const ReportEvent& b, unsigned resolution) {
  constexpr unsigned SHORT = 2;  // in powers of two of the resolution
  return a.begin >> resolution == b.begin >> resolution &&
         (std::max(a.time(), b.time()) >> resolution) >> SHORT == 0;
}

bool ReportLane::add(const ReportEvent& event, unsigned resolution) {
  if (resolution && !events_.empty() && are_one(events_.back(), event, resolution)) {
    events_.back().absorb(event);
    return false;
  }
  events_.push_back(event);
  return true;
}

void ReportLane::sort() {
  if (!std::is_sorted(events_.begin(), events_.end(), began_before))
    std::sort(events_.begin(), events_.end(), began_before);
}

void ReportLane::merge(unsigned resolution) {
  sort();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < events_.size(); i++) {
    if (kept && are_one(events_[kept - 1], events_[i], resolution))
      events_[kept - 1].absorb(events_[i]);
    else
      events_[kept++] = events_[i];
  }
  events_.resize(kept);
}

}  // namespace cudabpf::analyze
