// What analyses ask of the calls that give a GPU work or wait for it.
#pragma once

#include <cstdint>

#include "trace/read/line.hpp"

namespace cudabpf::analyze {

// Whether it returns only once earlier work is done, in one stream or in all.
inline bool waits(Work work, const Line& line) {
  return work == Work::wait || (work == Work::to_host && !line.async);
}

// A call made inside another is part of it: work and time are counted once, for the outermost.
inline bool is_counted(const Line& call) { return !call.has(Field::parent); }

// How many kernels the GPU runs because of the call, as far as that is known: those of graphs, too,
// and none if the call failed or was captured.
std::uint64_t kernel_runs(const Line& call);

// Which way a copy went: its `op`, or from which GPU to which.
Name direction_of(const Line& copy, Names& names);

}  // namespace cudabpf::analyze
