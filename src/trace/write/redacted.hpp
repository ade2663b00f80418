// A trace that can be shown to others: what reveals people and places is left out before it is
// written. What ran and how long it took stays, and so do the names of programs and kernels.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "cudabpf/sink.hpp"

namespace cudabpf {

class RedactedSink : public Sink {
 public:
  explicit RedactedSink(Sink& sink) : sink_(sink) {}

  void begin(const Session& session) override;
  void call(const Call& call) override;
  void process(const Process& process) override;
  void library(const Library& library) override;
  void lost(const LossEvent& loss) override;
  void gpu_times(const GpuTimes& times) override;

  void driver_call(const DriverCall& call) override { sink_.driver_call(call); }
  void gpu_error(const GpuError& error) override { sink_.gpu_error(error); }
  void gpu_sample(const GpuSample& sample) override { sink_.gpu_sample(sample); }
  void gpu_operation(const GpuOperation& work) override { sink_.gpu_operation(work); }
  void gpu_window(const GpuWindow& window) override { sink_.gpu_window(window); }
  void range(const NamedRange& range) override { sink_.range(range); }
  void python(const PythonFound& found) override { sink_.python(found); }
  void tallied(const Tallies& tallies) override { sink_.tallied(tallies); }
  void flush() override { sink_.flush(); }
  void end(const Totals& totals) override { sink_.end(totals); }

 private:
  const PythonStack& shown(const PythonStack& stack);

  Sink& sink_;
  std::unordered_map<std::uint64_t, PythonStack> stacks_;  // as they are shown, by their numbers
};

}  // namespace cudabpf
