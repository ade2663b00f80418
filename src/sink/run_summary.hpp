// What a run says at its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cudabpf/sink.hpp"
#include "trace/files/jsonl.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf {

struct RunEnd {
  Totals totals;
  std::optional<TraceWritten> written;  // none: nobody wanted a trace
  std::uint64_t libraries = 0;          // copies of libcuda that were probed
  bool inside = false;                  // calls are recorded inside the processes
  // What `cudabpf summary` says of the trace; empty: it was not read, being too large, say.
  std::string answer;
  double compresses = 0;  // by how much -o FILE.zst would be smaller; 0: that was not tried
};

std::string render_summary(const RunEnd& end, const Terminal& terminal);

}  // namespace cudabpf
