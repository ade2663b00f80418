// Several sinks as one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cudabpf/sink.hpp"

namespace cudabpf {

class TeeSink : public Sink {
 public:
  explicit TeeSink(std::vector<Sink*> sinks) : sinks_(std::move(sinks)) {}

  void begin(const Session& session) override { each(&Sink::begin, session); }
  void call(const Call& call) override { each(&Sink::call, call); }
  void driver_call(const DriverCall& call) override { each(&Sink::driver_call, call); }
  void gpu_error(const GpuError& error) override { each(&Sink::gpu_error, error); }
  void gpu_sample(const GpuSample& sample) override { each(&Sink::gpu_sample, sample); }
  void gpu_operation(const GpuOperation& work) override { each(&Sink::gpu_operation, work); }
  void gpu_times(const GpuTimes& times) override { each(&Sink::gpu_times, times); }
  void gpu_window(const GpuWindow& window) override { each(&Sink::gpu_window, window); }
  void python(const PythonFound& found) override { each(&Sink::python, found); }
  void range(const NamedRange& range) override { each(&Sink::range, range); }
  void tallied(const Tallies& tallies) override { each(&Sink::tallied, tallies); }
  std::uint64_t oldest_tallies_ns() const override {
    std::uint64_t oldest = ANY_AGE;
    for (const Sink* sink : sinks_) oldest = std::min(oldest, sink->oldest_tallies_ns());
    return oldest;
  }
  void process(const Process& process) override { each(&Sink::process, process); }
  void library(const Library& library) override { each(&Sink::library, library); }
  void lost(const LossEvent& loss) override { each(&Sink::lost, loss); }
  void open_calls(const OpenCallsNow& calls) override { each(&Sink::open_calls, calls); }
  void flush() override {
    for (Sink* sink : sinks_) sink->flush();
  }
  void end(const Totals& totals) override { each(&Sink::end, totals); }

 private:
  template <typename Event>
  void each(void (Sink::*take)(const Event&), const Event& event) {
    for (Sink* sink : sinks_) (sink->*take)(event);
  }

  std::vector<Sink*> sinks_;
};

}  // namespace cudabpf
