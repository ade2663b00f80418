// Warns at once if something is not recorded although it was wanted, as soon as a process has
// reported it: a trace that lacks it may take hours to make.
#pragma once

#include <set>
#include <string>

#include "cudabpf/sink.hpp"

namespace cudabpf {

class Warnings : public Sink {
 public:
  void begin(const Session&) override {}
  void call(const Call&) override {}
  void driver_call(const DriverCall&) override {}
  void gpu_error(const GpuError&) override {}
  void gpu_sample(const GpuSample&) override {}
  void gpu_operation(const GpuOperation&) override {}
  void gpu_times(const GpuTimes& times) override;
  void gpu_window(const GpuWindow&) override {}
  void range(const NamedRange&) override {}
  void python(const PythonFound& found) override;
  void tallied(const Tallies&) override {}
  void process(const Process&) override {}
  void library(const Library& library) override;
  void lost(const LossEvent&) override {}
  void flush() override {}
  void end(const Totals&) override {}

 private:
  bool is_new(const std::string& reason);

  std::set<std::string> said_;  // each reason once, and no more than a screenful
};

}  // namespace cudabpf
