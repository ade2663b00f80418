// What a call means to the GPU: the few kinds that analyses of a program's course tell apart.
#pragma once

#include <cstdint>

#include "analyze/trace/line.hpp"

namespace cudabpf::analyze {

enum class Work : std::uint8_t {
  other,      // queries, events, streams
  recorded,   // work that is added to a graph for later, while its stream is captured
  setup,      // init, devices, contexts
  module,     // code is loaded, compiled or looked up
  memory,     // allocated, freed, mapped
  launch,     // of a kernel or a graph
  set,        // memory is filled by the GPU
  to_device,  // copies
  to_host,
  copy,  // in another direction, or an unknown one
  wait,  // for the GPU
};

// The work of a line that is a call.
Work work_of(const Line& call);

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

// Whether it gives the GPU something to do.
inline bool gives_work(Work work) { return work >= Work::launch && work <= Work::copy; }

}  // namespace cudabpf::analyze
