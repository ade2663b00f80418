// What may be concluded from a trace, judging by the functions that it records: if it leaves out
// calls that free, it is not known what memory is held.
#pragma once

#include <string>
#include <vector>

#include "correlate/graphs/graphs.hpp"
#include "correlate/learners/allocations.hpp"
#include "cudabpf/function_filter.hpp"

namespace cudabpf {

struct Coverage {
  bool devices = true;  // which context is current, and on which device
  Graphs::Recorded graphs = Graphs::Recorded::all;
  Allocations::Seen memory = {};
  std::vector<const Function*> silent = {};

  bool ends() const { return devices && memory.all; }  // the GPUs of a copy's ends
  static Coverage of(const RecordedOf& recorded);
};

// The kinds of calls that the trace does not record completely: "launches", "copies", "waits",
// "allocations", "frees". Its header lists them.
std::vector<std::string> kinds_left_out(const RecordedOf& recorded);

}  // namespace cudabpf
