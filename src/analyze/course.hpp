// The course of a run, to be compared with another's: the iterations and phases of the thread that
// launches most, and how long its process left the GPU idle.
#pragma once

#include "analyze/idle.hpp"
#include "analyze/iterations.hpp"
#include "analyze/phases.hpp"
#include "analyze/thread_work.hpp"

namespace cudabpf::analyze {

class Course : public Analysis {
 public:
  explicit Course(Names& names) : idle_(names, 0), threads_(0, names, idle_) {}

  void line(const Line& line) override;
  void finish(const TraceFacts& facts) override;

  const Iterations& iterations() const { return iterations_; }
  const Phases& phases() const { return phases_; }
  // ns; of the time from its first work to its last. Both 0: it had none.
  std::uint64_t idle() const { return idle_time_; }
  std::uint64_t working() const { return working_; }

 private:
  Idle idle_;
  ThreadsAtWork threads_;
  Iterations iterations_;
  Phases phases_;
  std::uint64_t idle_time_ = 0, working_ = 0;
};

}  // namespace cudabpf::analyze
