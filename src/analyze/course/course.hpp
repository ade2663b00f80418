// The course of a run: the iterations and phases of the thread that launches most, and how long its
// process left the GPU idle.
#pragma once

#include "analyze/course/idle.hpp"
#include "analyze/course/iterations.hpp"
#include "analyze/course/phases.hpp"
#include "analyze/course/thread_work.hpp"

namespace cudabpf::analyze {

class Course : public Analysis {
 public:
  // The thread is chosen from the process `pid`; 0: from any. The longest `gaps` idle times are
  // kept.
  Course(Names& names, std::uint32_t pid, std::size_t gaps)
      : idle_(names, gaps), threads_(pid, idle_) {}

  void line(const Line& line) override;
  void finish(const TraceFacts& facts) override;

  const Idle& idle() const { return idle_; }
  const ThreadsAtWork& threads() const { return threads_; }
  const ThreadWork* thread() const { return thread_; }         // null: there is none
  const Idle::OfProcess* process() const { return process_; }  // likewise; the thread's
  const Iterations& iterations() const { return iterations_; }
  const Phases& phases() const { return phases_; }

 private:
  Idle idle_;
  ThreadsAtWork threads_;
  const ThreadWork* thread_ = nullptr;
  const Idle::OfProcess* process_ = nullptr;
  Iterations iterations_;
  Phases phases_;
};

}  // namespace cudabpf::analyze
