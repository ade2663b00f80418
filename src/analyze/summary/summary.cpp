#include "analyze/summary/summary.hpp"

#include <algorithm>

namespace cudabpf::analyze {

Summary::Summary(Names& names, ThreadFilter wanted, Part part, Moments moments, std::size_t gaps)
    : names_(names),
      part_(part),
      totals_(names),
      execution_(names, wanted, gaps, part),
      memory_(names, part),
      ranges_(names),
      moments_(moments),
      wanted_(wanted) {}

void Summary::line(const Line& line) {
  totals_.line(line);
  execution_.line(line);
  waits_.line(line);
  memory_.line(line);
  ranges_.line(line);
}

void Summary::outside(const Line& line) {
  totals_.outside(line);
  execution_.outside(line);
  waits_.outside(line);
  memory_.outside(line);
}

void Summary::finish(const TraceFacts& facts) {
  totals_.finish(facts);
  execution_.finish(facts);
  waits_.finish(facts);
  memory_.finish(facts);
  ranges_.finish(facts);
  header_ = facts.header;
  lacks_launches_ = facts.leaves_out("launches");
  duration_ = part_.clipped(facts.duration()) - part_.clipped(0);
  Seen seen{names_, totals_, execution_, memory_, facts, part_, moments_};
  judge_processes(seen);
  stretch_ = stretch_of(execution_);
  measured_ = measured_of(execution_, stretch_);
  verdict_ = find_verdict(seen);
}

bool Summary::verdict_shows(std::string_view id) const {
  return std::any_of(verdict_.begin(), verdict_.end(),
                     [&](const Finding& finding) { return finding.id == id; });
}

std::uint64_t Summary::inference_time() const {
  return execution_.inference().end - execution_.inference().begin;
}

std::uint64_t Summary::inference_idle() const { return execution_.idle_in_inference(); }

}  // namespace cudabpf::analyze
