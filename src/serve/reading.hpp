// Reads a trace of the folder for an analysis.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "analyze/analysis.hpp"
#include "analyze/trace_reader.hpp"
#include "serve/folder.hpp"
#include "trace/header.hpp"

namespace cudabpf::serve {

// Asked again and again while something takes long. False: nobody wants it any more.
using IsWanted = std::function<bool()>;

// At its first line. Reading fails once it is not wanted.
Result<std::unique_ptr<analyze::TraceReader>> open_trace(const Folder& folder,
                                                         const FoundTrace& trace,
                                                         IsWanted is_wanted);

// Whether its last line is about as old as its file. What was copied a moment ago is not: its
// capture was cut off some time before. Not known, where the trace does not say when it began:
// true.
bool was_written_live(const FoundTrace& trace, const analyze::TraceFacts& facts);

// What a file's header says of it: where it was taken, and of which trace it is which part.
struct Head {
  analyze::Json shown =
      analyze::Json::object();        // as the list has it: host, gpus, started, program
  std::optional<TraceClocks> clocks;  // those of the same trace have the same
  unsigned part = 0;                  // 0: it is all of a trace
};
Result<Head> head_of(const Folder& folder, const std::string& file);

// How pages show its times: as the subcommands do by default.
Moments moments_of(const analyze::TraceFacts& facts);

// What the list shows of a trace, by the names that `summary --json` has for it: of its `trace` and
// of its `summary`. What could not be read has an `error` instead.
analyze::Json figures_of(const Folder& folder, const FoundTrace& trace, IsWanted is_wanted);

}  // namespace cudabpf::serve
