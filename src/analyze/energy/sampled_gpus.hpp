// How busy the GPUs were in all, for answers about one process's part in it.
#pragma once

#include "analyze/analysis.hpp"
#include "analyze/gpu_samples.hpp"
#include "state/gpu_figures.hpp"

namespace cudabpf::analyze {

class SampledGpus : public Analysis {
 public:
  void line(const Line& line) override {
    if (line.kind == LineKind::gpu_sample) figures_.add(sample_in(line));
  }
  // A list of the GPUs' mean activity; empty: none was sampled.
  Json json() const;
  void add_to(Page& page) const;

 private:
  GpusFigures figures_;
};

}  // namespace cudabpf::analyze
