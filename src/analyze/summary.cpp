#include "analyze/summary.hpp"

namespace cudabpf::analyze {

Summary::Summary(Names& names, std::uint32_t pid)
    : names_(names),
      totals_(names),
      idle_(names, GAPS),
      threads_(pid, names, idle_),
      memory_(names),
      pid_(pid) {}

void Summary::line(const Line& line) {
  totals_.line(line);
  idle_.line(line);
  threads_.line(line);
  memory_.line(line);
}

void Summary::finish(const TraceFacts& facts) {
  totals_.finish(facts);
  idle_.finish(facts);
  threads_.finish(facts);
  memory_.finish(facts);
  header_ = Json::parse(facts.header, nullptr, false);
  duration_ = facts.duration();
  if (threads_.threads().empty()) return;
  thread_ = &threads_.threads().front();
  iterations_ = find_iterations(*thread_);
  phases_ = find_phases(*thread_, iterations_, duration_);
}

// From the first iteration that is no warm-up to the end of the last, as the phase is.
std::uint64_t Summary::inference_time() const { return iterations_.end - iterations_.warm; }

std::uint64_t Summary::inference_idle() const {
  return (iterations_.at_end - iterations_.at_warm).idle;
}

}  // namespace cudabpf::analyze
