// What the subcommands that read traces have in common.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/trace_reader.hpp"

namespace CLI {
class App;
}

namespace cudabpf::cli {

struct TraceFlags {
  std::vector<std::string> paths;
  bool json = false;
};

// The traces' names, and --json.
void add_trace_flags(CLI::App& sub, TraceFlags& flags);

// Opens it; a bar on stderr shows how far it is read, if that is a terminal and takes longer.
Result<std::unique_ptr<analyze::TraceReader>> open_trace(const std::vector<std::string>& paths);

// An answer that is an object in JSON, with what is to be said of the trace; or a page for people.
void print_json(const analyze::Json& answer, const analyze::TraceFacts& facts);
void print_page(Page page, const analyze::TraceFacts& facts);

// A page for standard output: as wide as the terminal, wider than it for a file.
Page page_for_stdout();

}  // namespace cudabpf::cli
