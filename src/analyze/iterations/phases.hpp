// Where a program's time went, from beginning to end, according to the calls of the thread that
// launches most. Windows follow one another: before CUDA, initialisation, loading, warm-up,
// inference, clean-up. Some calls are taken out of their window and are phases of their own:
// loading code, anywhere; input, output and waiting, once the weights are loaded. So the times of
// all phases add up to the whole time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/gaps/gpu_curve.hpp"
#include "analyze/iterations/iterations.hpp"

namespace cudabpf::analyze {

struct Phase {
  std::string name;
  bool seen = false;
  std::uint64_t time = 0;              // ns
  std::uint64_t calls = 0;             // of a window: those that began in it
  std::uint64_t in_calls = 0;          // of a window: the part of its time in CUDA calls
  bool is_work = false;                // what the program is for: inference
  std::uint64_t begin = 0, end = 0;    // of a window; end 0: it is not a window
  std::string note;                    // a remark, or why it is not seen
  std::optional<GpuCurve::Share> gpu;  // what a GPU did in a window, if that is measured
};

struct Phases {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t loading_calls = 0;  // from the first allocation to the last of the weights
  std::vector<Phase> phases;
};

// If only a part of the trace is wanted: the phases in it, each cut to it.
Phases find_phases(const ThreadWork& thread, const Iterations& iterations, std::uint64_t trace_end,
                   const Part& part = {});

Json phases_json(const Phases& phases);
// `all`: those, too, that took no time to speak of.
void add_phases(Page& page, const Phases& phases, bool all);

}  // namespace cudabpf::analyze
