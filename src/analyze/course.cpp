#include "analyze/course.hpp"

namespace cudabpf::analyze {

void Course::line(const Line& line) {
  idle_.line(line);
  threads_.line(line);
}

void Course::finish(const TraceFacts& facts) {
  idle_.finish(facts);
  threads_.finish(facts);
  if (threads_.threads().empty()) return;
  const ThreadWork& busiest = threads_.threads().front();
  iterations_ = find_iterations(busiest);
  phases_ = find_phases(busiest, iterations_, facts.duration());
  for (const Idle::OfProcess& process : idle_.processes())
    if (process.pid == busiest.pid && !working_) {
      idle_time_ = process.idle.total();
      working_ = process.working_time;
    }
}

}  // namespace cudabpf::analyze
