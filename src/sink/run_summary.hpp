// What a trace showed, as a page of text for the end of a run.
#pragma once

#include <optional>
#include <string>

#include "cudabpf/sink.hpp"
#include "sink/jsonl.hpp"
#include "sink/stats.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf {

// `written` is where the trace went, if anywhere.
std::string render_summary(const Stats& stats, const Totals& totals,
                           const std::optional<TraceWritten>& written, const Terminal& terminal);

}  // namespace cudabpf
