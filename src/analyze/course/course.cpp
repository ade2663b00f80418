#include "analyze/course/course.hpp"

namespace cudabpf::analyze {

void Course::line(const Line& line) {
  idle_.line(line);
  gpus_.line(line);
  threads_.line(line);
}

void Course::finish(const TraceFacts& facts) {
  idle_.finish(facts);
  gpus_.finish(facts);
  threads_.finish(facts);
  if (threads_.threads().empty()) return;
  thread_ = &threads_.threads().front();
  iterations_ = find_iterations(*thread_, part_);
  phases_ = find_phases(*thread_, iterations_, facts.duration(), part_);
  for (const Idle::OfProcess& process : idle_.processes())
    if (process.number == thread_->process) process_ = &process;
}

}  // namespace cudabpf::analyze
