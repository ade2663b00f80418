#include "analyze/iterations/execution.hpp"

namespace cudabpf::analyze {

void Execution::line(const Line& line) {
  idle_.line(line);
  gpus_.line(line);
  threads_.line(line);
}

void Execution::finish(const TraceFacts& facts) {
  idle_.finish(facts);
  gpus_.finish(facts);
  threads_.finish(facts);
  for (const ProcessWork& process : threads_.processes())
    gpus_.set_name(process.number, process.comm);
  trace_end_ = facts.duration();
  if (!threads_.threads().empty()) look_at(threads_.threads().front());
}

void Execution::set_waits(std::uint64_t process, std::int64_t device,
                          std::vector<WaitForRank> waits) {
  gpus_.set_waits(process, device, std::move(waits));
  if (thread_) look_at(*thread_);
}

void Execution::look_at(const ThreadWork& thread) {
  thread_ = &thread;
  process_ = nullptr;
  iterations_ = find_iterations(thread, part_);
  phases_ = find_phases(thread, iterations_, trace_end_, part_);
  if (const GpusAtWork::OfGpu* gpu = gpus_.of_process(thread.process))
    for (Phase& phase : phases_.phases)
      if (phase.end > phase.begin) phase.gpu = gpu->curve.between(phase.begin, phase.end);
  for (const Idle::OfProcess& process : idle_.processes())
    if (process.number == thread_->process) process_ = &process;
}

InferenceTime Execution::inference() const {
  if (!thread_) return {};
  return {thread_->process, part_.clipped(iterations_.warm), part_.clipped(iterations_.end)};
}

std::uint64_t Execution::idle_in_inference() const {
  return (iterations_.at_end - iterations_.at_warm).idle;
}

}  // namespace cudabpf::analyze
