// What a trace can tell, by which functions it has: where calls that free are left out, nobody
// knows what memory is held.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "correlate/allocations.hpp"
#include "cudabpf/cuda_api.hpp"

namespace cudabpf {

// How much of a function's calls is recorded.
enum class Recorded : std::uint8_t {
  no,
  silently,  // for what follows from it: its calls have no lines
  entry,
  whole,  // and its result
};
using RecordedOf = std::function<Recorded(const Function&)>;

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
