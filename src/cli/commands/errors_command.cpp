// cudabpf errors: what failed, what did not return, and which processes ended badly.
#include "analyze/questions/errors.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

struct ErrorsFlags : TraceFlags {
  bool all = false;
};

Result<int> print_errors(const ErrorsFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::Errors errors(reader->names(), flags.all);
  analyze::Memory memory(reader->names(), reader->facts().part);
  return answer(
      flags, *reader, {&errors, &memory},
      {.json = [&] { return errors_json(errors.answer(), memory); },
       .page = [&](Page& page) { add_errors(page, errors.answer(), memory, flags.top.rows); },
       .lists = {"gpu_errors", "failures", "unfinished", "operations", "processes",
                 "read_faults"}});
}

}  // namespace

void add_errors(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<ErrorsFlags>(
      app, action, "errors", "What failed, and what did not return", print_errors);
  add_trace_flags(sub, flags,
                  {"errors traces/h200-gpt2.jsonl.zst",
                   "errors --all traces/h200-gpt2.jsonl.zst   each of them, with its time"});
  add_time(sub, flags);
  sub.add_flag("--all", flags.all, "Also list each one, in order of time");
  add_top(sub, flags.top, 20, "Show at most N rows of each table");
}

}  // namespace cudabpf::cli
