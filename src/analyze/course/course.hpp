// The course of a run: the iterations and phases of the thread that launches most, and how long its
// process left the GPU idle: as it is concluded from waits, and as GPUs' own times tell.
#pragma once

#include "analyze/course/gpus_at_work.hpp"
#include "analyze/course/idle.hpp"
#include "analyze/course/iterations.hpp"
#include "analyze/course/phases.hpp"
#include "analyze/course/thread_work.hpp"

namespace cudabpf::analyze {

class Course : public Analysis {
 public:
  // The thread is chosen from those wanted. The longest `gaps` idle times are
  // kept. Iterations and phases are found in the whole trace; what is told of them, and of idle
  // times, is of the part.
  Course(Names& names, Wanted wanted, std::size_t gaps, Part part = {})
      : part_(part),
        idle_(names, gaps, part),
        gpus_(names, gaps, part),
        threads_(wanted, idle_, part) {}

  void line(const Line& line) override;
  void outside(const Line& line) override { this->line(line); }
  void finish(const TraceFacts& facts) override;

  const Idle& idle() const { return idle_; }
  const GpusAtWork& gpus() const { return gpus_; }
  const ThreadsAtWork& threads() const { return threads_; }
  const ThreadWork* thread() const { return thread_; }  // null: there is none
  bool others_launch() const { return threads_.launches() > (thread_ ? thread_->launches : 0); }
  const Idle::OfProcess* process() const { return process_; }  // likewise; the thread's
  const Iterations& iterations() const { return iterations_; }
  const Phases& phases() const { return phases_; }

 private:
  Part part_;
  Idle idle_;
  GpusAtWork gpus_;
  ThreadsAtWork threads_;
  const ThreadWork* thread_ = nullptr;
  const Idle::OfProcess* process_ = nullptr;
  Iterations iterations_;
  Phases phases_;
};

}  // namespace cudabpf::analyze
