// What a GPU did during the work that is judged, by its own times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/iterations/execution.hpp"
#include "analyze/summary/stretch.hpp"
#include "util/durations.hpp"

namespace cudabpf::analyze {

struct MeasuredExecution {
  const GpusAtWork::OfGpu* gpu = nullptr;  // the process's busiest; null: nothing is measured
  GpuCurve::Share share;                   // of the stretch
  // How long each iteration took whose times are known, sorted.
  std::vector<std::uint64_t> busy, exposed;
  CriticalPath path;       // of a usual iteration; no time: it is not known
  bool can_judge = false;  // nearly all that it did is in the trace

  double percent_of(std::uint64_t time) const { return analyze::share(time, share.time); }
  std::string part_text(std::uint64_t time) const { return percent(time, share.time); }
  std::uint64_t only_copies() const { return share.busy - std::min(share.busy, share.kernels); }
};

MeasuredExecution measured_of(const Execution& execution, const Stretch& stretch);

// Null: nothing is measured.
Json measured_execution_json(const MeasuredExecution& work, const Names& names);

}  // namespace cudabpf::analyze
