// Samples of GPUs, as lines of a trace have them.
#pragma once

#include "cudabpf/event.hpp"
#include "trace/read/line.hpp"

namespace cudabpf::analyze {

// What a line of the kind gpu_sample has. Figures that no GPU can have are left out, as if they
// had not been read.
GpuSample sample_in(const Line& line);

}  // namespace cudabpf::analyze
