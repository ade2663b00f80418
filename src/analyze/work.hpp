// What analyses need to know about calls that give a GPU work or wait for it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "trace/read/line.hpp"

namespace cudabpf::analyze {

// Whether it returns only once earlier work is done, in one stream or in all.
inline bool waits(Work work, const Line& line) {
  return work == Work::wait || (work == Work::to_host && !line.async);
}

// Work and time are counted once in each layer: a call made inside another of its layer is part of
// that one. Giving GPUs work and waiting for it count in the driver's layer.
inline bool is_counted(const Line& call) { return !call.has(Field::parent) && call.layer == 0; }
// No call is known to contain it.
inline bool is_outermost(const Line& call) {
  return !call.has(Field::parent) && !call.has(Field::within);
}
// The call that contains it, of any layer; 0: none. Calls are numbered as they begin.
inline std::uint64_t enclosing(const Line& call) { return std::max(call.parent, call.within); }

// How many kernels the GPU is known to run because of the call: those of graphs, too, and none if
// the call failed or was captured.
std::uint64_t kernel_runs(const Line& call);

// Which way a copy went: its `op`, or from which GPU to which.
Name direction_of(const Line& copy, Names& names);

}  // namespace cudabpf::analyze
