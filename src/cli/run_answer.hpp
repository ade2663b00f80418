// What a run prints about the trace that it has just written.
#pragma once

#include <string>

#include "trace/files/jsonl.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf::cli {

// What `cudabpf summary` prints about it, as much as fits on the terminal beside the rest of the
// run's end. Empty if the trace would take long to read, or cannot be read again.
std::string summary_at_end(const TraceWritten& written, const Terminal& terminal);
// The factor by which zstd would shrink it, from a sample; 0 where it is small or compressed.
double compresses_by(const TraceWritten& written);

}  // namespace cudabpf::cli
