// cudabpf errors: what failed, what did not return, and which processes ended badly.
#include "analyze/questions/errors.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

struct ErrorsFlags : TraceFlags {
  bool all = false;
  Top top{20};
};

Result<int> print_errors(const ErrorsFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::Errors errors(reader->names(), flags.all);
  analyze::Memory memory(reader->names(), reader->facts().part);
  return answer(
      flags, *reader, {&errors, &memory},
      {.json =
           [&] {
             analyze::Json json = analyze::errors_json(errors.answer(), memory);
             flags.top.cut(json, {"gpu_errors", "failures", "unfinished", "operations", "processes",
                                  "read_faults"});
             return json;
           },
       .page = [&](Page& page) { add_errors(page, errors.answer(), memory, flags.top.rows); }});
}

}  // namespace

void add_errors(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ErrorsFlags>();
  CLI::App* sub = app.add_subcommand("errors", "What failed, and what did not return");
  add_trace_flags(*sub, *flags,
                  {"errors traces/h200-gpt2.jsonl.zst",
                   "errors --all traces/h200-gpt2.jsonl.zst   each of them, with its time"});
  add_time(*sub, *flags);
  sub->add_flag("--all", flags->all, "Also list each one, in order of time");
  add_top(*sub, flags->top, "Show at most N rows of each table");
  sub->callback([flags, &action] { action = [flags] { return print_errors(*flags); }; });
}

}  // namespace cudabpf::cli
