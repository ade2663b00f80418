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

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cudabpf::cli {

struct TraceFlags {
  std::vector<std::string> paths;
  bool json = false;
};

// The traces' names, --json, and what stands below --help: lines of examples, without the program's
// name.
void add_trace_flags(CLI::App& sub, TraceFlags& flags, std::initializer_list<const char*> examples);
void add_reading_footer(CLI::App& sub, std::initializer_list<const char*> examples);

// Opens it; a bar on stderr shows how far it is read, if that is a terminal and takes longer.
Result<std::unique_ptr<analyze::TraceReader>> open_trace(const std::vector<std::string>& paths);

// As wide as the terminal; for a file, wider than most.
Page page_for(std::FILE* to);
void print_json(const analyze::Json& json, std::FILE* to, bool on_one_line = false);
// On stderr, for answers whose form has no place for it.
void say_what_is_missing(const analyze::TraceFacts& facts);

// An answer: an object in JSON or a page for people, to which what is to be said of the trace is
// added.
struct Answer {
  std::function<analyze::Json()> json;
  std::function<void(Page&)> page;
};
// Shows the analyses the whole trace, and prints their answer.
Result<int> answer(const TraceFlags& flags, analyze::TraceReader& reader,
                   std::initializer_list<analyze::Analysis*> analyses, const Answer& answer);
// The second half of that, for a trace that was read.
void print_answer(const TraceFlags& flags, const analyze::TraceFacts& facts, const Answer& answer,
                  std::FILE* to);

// Whether a file of that name can be written without a trace being lost by that.
Result<> is_no_trace(const std::string& path, const std::vector<std::string>& traces);
// Into a file of that name, which is made anew, or to standard output for "-". Says on stderr what
// was written. The answer is the exit status.
Result<int> write_picture(const std::string& path, const std::string& picture);
// Where the answer goes beside a picture: both on standard output would be neither.
std::FILE* beside_picture(const std::string& path);
void add_written(Page& page, const std::string& path, std::uint64_t bytes);

// --top, for tables that tell of the first. JSON has all, unless it is given.
struct Top {
  std::size_t rows;
  const CLI::Option* option = nullptr;

  // Cuts these lists in the object, and adds how many of each were left out.
  void cut(analyze::Json& object, std::initializer_list<const char*> lists) const;
};
void add_top(CLI::App& sub, Top& top, const std::string& help);

}  // namespace cudabpf::cli
