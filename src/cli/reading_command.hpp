// What the subcommands that read traces have in common.
#pragma once

#include <cstdio>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/trace_reader.hpp"
#include "cli/export_files.hpp"
#include "cli/flags/one_of.hpp"
#include "cli/flags/part_flags.hpp"
#include "cli/shown.hpp"
#include "util/text/moments.hpp"

namespace cudabpf::cli {

// --top, for tables that show only the first rows. JSON has all rows unless --top is given.
struct Top {
  std::size_t rows = 0;
  const CLI::Option* option = nullptr;

  // Cuts a list in the object, and adds how many rows were left out. "memory/churn" is the list in
  // the object's object "memory"; where that is a list, the one in each of its objects.
  void cut(analyze::Json& object, std::string_view list) const;
};
void add_top(CLI::App& sub, Top& top, std::size_t rows, const std::string& help);

// What subcommands that read a trace are asked for. Each has the options that it adds.
struct TraceFlags {
  std::vector<std::string> paths;
  bool json = false;
  PartFlags part;
  std::string time = "relative";
  bool by_line = false;  // a call is placed by its line of Python, not by the program's range
  std::string svg;       // the file for a picture; empty: there is to be none
  Top top;
};

// Adds the traces' names, --json, which part of the trace is wanted, and what comes below --help:
// lines of examples, without the program's name.
void add_trace_flags(CLI::App& sub, TraceFlags& flags, std::initializer_list<const char*> examples);
// Adds --time, for pages that show when something was.
CLI::Option* add_time(CLI::App& sub, TraceFlags& flags);
// Adds --by, which sets `by`, and by_line if its word is "line".
template <typename By>
void add_by(CLI::App& sub, TraceFlags& flags, By& by, const Meanings<By>& meanings,
            const std::string& help) {
  one_of(sub, "--by", by, meanings, help)
      ->capture_default_str()
      ->each([&flags](const std::string& word) { flags.by_line = word == "line"; });
}
void add_svg(CLI::App& sub, TraceFlags& flags);
void add_json(CLI::App& sub, bool& json);
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
  std::vector<std::string_view> lists = {};  // of the object, that --top cuts
  std::function<bool()> found_thread = {};   // whether --pid and --tid have any call; empty: always
  std::function<std::string()> svg = {};     // the picture that --svg asks for
};
// Shows the analyses the whole trace, and prints their answer. Returns the exit status.
Result<int> answer(const TraceFlags& flags, analyze::TraceReader& reader,
                   std::initializer_list<analyze::Analysis*> analyses, const Answer& answer);
// Prints an answer for a trace that was read.
void print_answer(const TraceFlags& flags, const analyze::TraceFacts& facts, const Answer& answer,
                  std::FILE* to);

// Which files were written, and how large they are.
void add_files(Page& page, const ExportFiles& files);
analyze::Json files_json(const ExportFiles& files);

}  // namespace cudabpf::cli
