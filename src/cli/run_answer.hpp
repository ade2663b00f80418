// What a run says of the trace that it has just written.
#pragma once

#include <string>

#include "trace/files/jsonl.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf::cli {

// What `cudabpf summary` says of it, as much as fits on the terminal beside the rest of the run's
// end. Empty where it would take long to read, or cannot be read again.
std::string summary_at_end(const TraceWritten& written, const Terminal& terminal);
// By how much zstd would make it smaller, by a sample of it; 0 where it is small or compressed.
double compresses_by(const TraceWritten& written);

}  // namespace cudabpf::cli
