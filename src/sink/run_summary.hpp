// What a run reports at its end.
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
  std::optional<TraceWritten> written;  // none: no trace was wanted
  std::uint64_t libraries = 0;          // copies of libcuda that were probed
  bool inside = false;                  // calls are recorded inside the processes
  // The answer of `cudabpf summary` for the trace; empty: the trace was not read, e.g. being too
  // large.
  std::string answer;
  double compresses = 0;  // how many times smaller -o FILE.zst would be; 0: that was not tried
};

std::string render_summary(const RunEnd& end, const Terminal& terminal);

}  // namespace cudabpf
