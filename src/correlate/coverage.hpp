// What a trace can tell, by which functions it has: where calls that free are left out, nobody
// knows what memory is held.
#pragma once

#include <string>
#include <vector>

#include "correlate/allocations.hpp"
#include "cudabpf/function_filter.hpp"

namespace cudabpf {

struct Coverage {
  bool devices = true;  // which context is current, and of which device
  Allocations::Seen memory = {};
  std::vector<const Function*> silent = {};

  bool ends() const { return devices && memory.all; }  // on which GPUs a copy's ends lie
  static Coverage of(const RecordedOf& recorded);
};

// The kinds of calls of which the trace does not have all: "launches", "copies", "waits",
// "allocations", "frees", as its header says.
std::vector<std::string> kinds_left_out(const RecordedOf& recorded);

}  // namespace cudabpf
