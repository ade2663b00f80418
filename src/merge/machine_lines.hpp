// Some lines are about a machine, not about traced processes: samples of its GPUs, errors of these,
// interrupts. Two traces of one machine at the same time both have them, and a merge has them once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/trace_reader.hpp"
#include "trace/header.hpp"
#include "trace/read/line.hpp"

namespace cudabpf::merge {

class MachineLines {
 public:
  // A trace that was read.
  void add(const analyze::TraceFacts& facts);

  // Whether one of the first `traces` that were added has this line of a trace with that header,
  // too.
  bool have(const analyze::Line& line, const TraceHeader& header, std::size_t traces) const;
  std::size_t count() const { return traces_.size(); }

 private:
  struct Trace {
    std::string boot_id;
    std::uint64_t begin = 0, end = 0;  // on the machine's CLOCK_MONOTONIC
    std::vector<SampledGpu> gpus;
    bool has_errors = false, has_interrupts = false;

    bool covers(const analyze::Line& line, const TraceHeader& header) const;
  };

  std::vector<Trace> traces_;
};

// CLOCK_MONOTONIC at a trace's ts 0, without what its time namespace adds; 0: not known.
std::uint64_t monotonic_of(const TraceHeader& header);

}  // namespace cudabpf::merge
