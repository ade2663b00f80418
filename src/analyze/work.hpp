// What analyses ask of the calls that give a GPU work or wait for it.
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
// it. What GPUs are given and waited for is the driver's layer.
inline bool is_counted(const Line& call) { return !call.has(Field::parent) && call.layer == 0; }
// No call is known to be around it.
inline bool is_outermost(const Line& call) {
  return !call.has(Field::parent) && !call.has(Field::within);
}
// The call that it was made in, of whatever layer; 0: none. Calls are numbered as they begin.
inline std::uint64_t enclosing(const Line& call) { return std::max(call.parent, call.within); }

// How many kernels the GPU runs because of the call, as far as that is known: those of graphs, too,
// and none if the call failed or was captured.
std::uint64_t kernel_runs(const Line& call);

// Which way a copy went: its `op`, or from which GPU to which.
Name direction_of(const Line& copy, Names& names);

}  // namespace cudabpf::analyze
