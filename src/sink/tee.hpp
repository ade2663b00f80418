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

  void begin(const Session& session) override {
    for (Sink* sink : sinks_) sink->begin(session);
  }
  void call(const Call& call) override {
    for (Sink* sink : sinks_) sink->call(call);
  }
  void driver_call(const DriverCall& call) override {
    for (Sink* sink : sinks_) sink->driver_call(call);
  }
  void gpu_error(const GpuError& error) override {
    for (Sink* sink : sinks_) sink->gpu_error(error);
  }
  void gpu_sample(const GpuSample& sample) override {
    for (Sink* sink : sinks_) sink->gpu_sample(sample);
  }
  void gpu_operation(const GpuOperation& work) override {
    for (Sink* sink : sinks_) sink->gpu_operation(work);
  }
  void gpu_times(const GpuTimes& times) override {
    for (Sink* sink : sinks_) sink->gpu_times(times);
  }
  void gpu_window(const GpuWindow& window) override {
    for (Sink* sink : sinks_) sink->gpu_window(window);
  }
  void python(const PythonFound& found) override {
    for (Sink* sink : sinks_) sink->python(found);
  }
  void range(const NamedRange& range) override {
    for (Sink* sink : sinks_) sink->range(range);
  }
  void tallied(const Tallies& tallies) override {
    for (Sink* sink : sinks_) sink->tallied(tallies);
  }
  std::uint64_t oldest_tallies_ns() const override {
    std::uint64_t oldest = ANY_AGE;
    for (const Sink* sink : sinks_) oldest = std::min(oldest, sink->oldest_tallies_ns());
    return oldest;
  }
  void process(const Process& process) override {
    for (Sink* sink : sinks_) sink->process(process);
  }
  void library(const Library& library) override {
    for (Sink* sink : sinks_) sink->library(library);
  }
  void lost(const LossEvent& loss) override {
    for (Sink* sink : sinks_) sink->lost(loss);
  }
  void open_calls(const OpenCallsNow& calls) override {
    for (Sink* sink : sinks_) sink->open_calls(calls);
  }
  void flush() override {
    for (Sink* sink : sinks_) sink->flush();
  }
  void end(const Totals& totals) override {
    for (Sink* sink : sinks_) sink->end(totals);
  }

 private:
  std::vector<Sink*> sinks_;
};

}  // namespace cudabpf
