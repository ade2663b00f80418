// The execution of a program: the iterations and phases of the thread that launches most, and how
// long its process left the GPU idle: as it is concluded from waits, and as GPUs' own times show.
#pragma once

#include <utility>
#include <vector>

#include "analyze/gaps/gpus_at_work.hpp"
#include "analyze/gaps/idle.hpp"
#include "analyze/iterations/iterations.hpp"
#include "analyze/iterations/phases.hpp"
#include "analyze/iterations/thread_work.hpp"

namespace cudabpf::analyze {

class Execution : public Analysis {
 public:
  // The thread is chosen from those wanted. The longest `gaps` idle times are
  // kept. Iterations and phases are found in the whole trace; what is shown of them, and of idle
  // times, is of the part.
  Execution(Names& names, ThreadFilter wanted, std::size_t gaps, Part part = {})
      : part_(part),
        idle_(names, gaps, part),
        gpus_(names, gaps, part),
        threads_(wanted, idle_, part) {}

  void line(const Line& line) override;
  void outside(const Line& line) override { this->line(line); }
  void finish(const TraceFacts& facts) override;

  // After the end: what collectives of a process waited for on a GPU.
  void set_waits(std::uint64_t process, std::int64_t device, std::vector<WaitForRank> waits);

  const Idle& idle() const { return idle_; }
  const GpusAtWork& gpus() const { return gpus_; }
  const ThreadsAtWork& threads() const { return threads_; }
  // The thread whose iterations and phases are shown from here on: one of those at work.
  void look_at(const ThreadWork& thread);
  const ThreadWork* thread() const { return thread_; }  // null: there is none
  bool others_launch() const { return threads_.launches() > (thread_ ? thread_->launches : 0); }
  const Idle::OfProcess* process() const { return process_; }  // the thread's; null: none
  const Iterations& iterations() const { return iterations_; }
  const Phases& phases() const { return phases_; }
  // From the first iteration after warm-up to the end of the last, like the phase.
  InferenceTime inference() const;
  std::uint64_t idle_in_inference() const;  // of its process
  bool is_of_part() const { return !part_.is_whole(); }

 private:
  Part part_;
  Idle idle_;
  GpusAtWork gpus_;
  ThreadsAtWork threads_;
  std::uint64_t trace_end_ = 0;
  const ThreadWork* thread_ = nullptr;
  const Idle::OfProcess* process_ = nullptr;
  Iterations iterations_;
  Phases phases_;
};

// For people: how busy GPUs were and why they were idle, measured where that is known, else when
// they are certain to have been idle. First the inference, then everything.
void add_idle_times(Page& page, const Execution& execution, std::size_t at_most, GapsBy by);

}  // namespace cudabpf::analyze
