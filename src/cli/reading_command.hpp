// What the subcommands that read traces have in common.
#pragma once

#include <cstdio>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/trace_reader.hpp"
#include "cli/export_files.hpp"
#include "cli/flags/part_flags.hpp"
#include "cli/shown.hpp"
#include "util/text/moments.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cudabpf::cli {

struct TraceFlags {
  std::vector<std::string> paths;
  bool json = false;
  PartFlags part;
  std::string time = "relative";
};

// Adds the traces' names, --json, which part of the trace is wanted, and what comes below --help:
// lines of examples, without the program's name.
void add_trace_flags(CLI::App& sub, TraceFlags& flags, std::initializer_list<const char*> examples);
// Adds --time, for pages that show when something was.
CLI::Option* add_time(CLI::App& sub, TraceFlags& flags);
void add_reading_footer(CLI::App& sub, std::initializer_list<const char*> examples);

// If stderr is a terminal and reading takes longer, a bar there shows the progress.
analyze::TraceReader::Progress reading_progress();
// Opens a trace, or several as their merge.
Result<std::unique_ptr<analyze::TraceReader>> open_trace(const std::vector<std::string>& paths);
// Opens it so that analyses are shown the part of it that is wanted. To find a phase or an
// iteration, all of it is read here first.
Result<std::unique_ptr<analyze::TraceReader>> open_trace(const TraceFlags& flags);
// How its pages show times.
Moments moments_of(const TraceFlags& flags, const analyze::TraceFacts& facts);
// Refuses a part that is beyond the trace's end, which is known once all of it was read.
Result<> is_in_trace(const analyze::TraceFacts& facts);
// Shows the analyses the whole trace.
Result<> read_trace(analyze::TraceReader& reader,
                    std::initializer_list<analyze::Analysis*> analyses);

void print_json(const analyze::Json& json, std::FILE* to, bool on_one_line = false);
// Prints what is missing on stderr, for answers whose form has no place for it.
void say_what_is_missing(const analyze::TraceFacts& facts);

// An answer: a JSON object, or a page for people. The trace's facts are added.
struct Answer {
  std::function<analyze::Json()> json;
  std::function<void(Page&)> page;
};
// Shows the analyses the whole trace, and prints their answer.
Result<int> answer(const TraceFlags& flags, analyze::TraceReader& reader,
                   std::initializer_list<analyze::Analysis*> analyses, const Answer& answer);
// The second half of answer(), for a trace that was read.
void print_answer(const TraceFlags& flags, const analyze::TraceFacts& facts, const Answer& answer,
                  std::FILE* to);

// Writes into a new file at `path`, or to standard output for "-". Says on stderr what was written.
// Returns the exit status.
Result<int> write_picture(const std::string& path, const std::string& picture);
// Where the answer goes besides a picture: standard output cannot usefully take both.
std::FILE* beside_picture(const std::string& path);
// Which files were written, and how large they are.
void add_files(Page& page, const ExportFiles& files);
analyze::Json files_json(const ExportFiles& files);

// --top, for tables that show only the first rows. JSON has all rows unless --top is given.
struct Top {
  std::size_t rows;
  const CLI::Option* option = nullptr;

  // Cuts these lists in the object, and adds how many of each were left out.
  void cut(analyze::Json& object, std::initializer_list<const char*> lists) const;
};
void add_top(CLI::App& sub, Top& top, const std::string& help);

}  // namespace cudabpf::cli
