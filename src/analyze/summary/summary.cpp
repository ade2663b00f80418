#include "analyze/summary/summary.hpp"

#include <algorithm>

namespace cudabpf::analyze {

Summary::Summary(Names& names, Wanted wanted, Part part, Moments moments)
    : names_(names),
      part_(part),
      totals_(names),
      course_(names, wanted, GAPS, part),
      memory_(names, part),
      moments_(moments),
      wanted_(wanted) {}

void Summary::line(const Line& line) {
  totals_.line(line);
  course_.line(line);
  memory_.line(line);
}

void Summary::outside(const Line& line) {
  totals_.outside(line);
  course_.outside(line);
  memory_.outside(line);
}

void Summary::finish(const TraceFacts& facts) {
  totals_.finish(facts);
  course_.finish(facts);
  memory_.finish(facts);
  header_ = facts.header;
  duration_ = part_.clipped(facts.duration()) - part_.clipped(0);
  Seen seen{names_, totals_, course_, memory_, facts, part_, moments_};
  judge_processes(seen);
  stretch_ = stretch_of(course_);
  measured_ = measured_of(course_, stretch_);
  verdict_ = find_verdict(seen);
}

bool Summary::verdict_shows(std::string_view id) const {
  return std::any_of(verdict_.begin(), verdict_.end(),
                     [&](const Finding& finding) { return finding.id == id; });
}

std::uint64_t Summary::inference_time() const {
  return course_.inference().end - course_.inference().begin;
}

std::uint64_t Summary::inference_idle() const { return course_.idle_in_inference(); }

}  // namespace cudabpf::analyze
