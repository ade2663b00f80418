// Warns at once if something is not recorded although it was wanted, as soon as a process has
// reported it: a trace that lacks it may take hours to make.
#pragma once

#include <set>
#include <string>

#include "cudabpf/sink.hpp"

namespace cudabpf {

class Warnings : public PartialSink {
 public:
  void gpu_times(const GpuTimes& times) override;
  void python(const PythonFound& found) override;
  void library(const Library& library) override;
  void lost(const LossEvent&) override {}

 private:
  bool is_new(const std::string& reason);

  std::set<std::string> said_;  // each reason once, and no more than a screenful
};

}  // namespace cudabpf
