// What a call is to the GPU: the few kinds that analyses of a program's course tell apart.
#pragma once

#include <cstdint>

#include "analyze/trace/line.hpp"

namespace cudabpf::analyze {

enum class Work : std::uint8_t {
  other,      // queries, events, streams
  recorded,   // what a thread adds to a graph, for later, while it captures a stream
  setup,      // init, devices, contexts
  module,     // code is loaded, compiled, looked up
  memory,     // allocated, freed, mapped
  launch,     // of a kernel or a graph
  set,        // memory is filled by the GPU
  to_device,  // copies
  to_host,
  copy,  // elsewhere, or where is not known
  wait,  // for the GPU
};

// The work of a line that is a call.
Work work_of(const Line& call);

// It returns when what was asked of the GPU before is done, in a stream or in all.
inline bool waits(Work work, const Line& line) {
  return work == Work::wait || (work == Work::to_host && !line.async);
}

// A call that stands inside of another is a part of it: work and time are counted once, as those of
// the outermost.
inline bool is_counted(const Line& call) { return !call.has(Field::parent); }

// Which way a copy went: its `op`, or from which GPU to which.
Name direction_of(const Line& copy, Names& names);

// The GPU has something to do after it.
inline bool gives_work(Work work) { return work >= Work::launch && work <= Work::copy; }

}  // namespace cudabpf::analyze
