// How busy the GPUs were in all, for answers about one process's part in it.
#pragma once

#include "analyze/analysis.hpp"
#include "state/gpu_figures.hpp"

namespace cudabpf::analyze {

class SampledGpus : public Analysis {
 public:
  void line(const Line& line) override {
    if (line.sample) figures_.add(*line.sample);
  }
  // A list of the GPUs' mean activity; empty: none was sampled.
  Json json() const;
  void add_to(Page& page) const;

 private:
  GpusFigures figures_;
};

}  // namespace cudabpf::analyze
