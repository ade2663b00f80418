// cudabpf calls: how often each function was called, and how long that took.
#include "analyze/questions/calls.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

struct CallsFlags : TraceFlags {
  analyze::Calls::By by = analyze::Calls::By::function;
};

Result<int> print_calls(const CallsFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::Calls calls(reader->names(), flags.by);
  return answer(
      flags, *reader, {&calls},
      {.json =
           [&] {
             return analyze::Json{{"calls", calls_json(calls.groups(), flags.by)}};
           },
       .page = [&](Page& page) { add_calls(page, calls.groups(), flags.top.rows); },
       .lists = {flags.by == analyze::Calls::By::function ? "calls" : "calls/functions"}});
}

}  // namespace

void add_calls(CLI::App& app, Action& action) {
  using enum analyze::Calls::By;
  auto [sub, flags] = add_command<CallsFlags>(
      app, action, "calls", "How often each CUDA function was called, and how long it took",
      print_calls);
  add_trace_flags(
      sub, flags,
      {"calls traces/h200-gpt2.jsonl.zst", "calls --by stream --top 5 traces/h200-gpt2.jsonl.zst",
       "calls --phase inference traces/h200-gpt2.jsonl.zst",
       "calls --json traces/h200-gpt2.jsonl.zst | jq '.calls[0]'"});
  add_time(sub, flags);
  add_by(sub, flags, flags.by,
         {{"function", function},
          {"pid", pid},
          {"tid", tid},
          {"device", device},
          {"stream", stream},
          {"kernel", kernel},
          {"range", range},
          {"line", range},
          {"container", container}},
         "What to group the calls by");
  add_top(sub, flags.top, 40, "Show at most N functions per group");
}

}  // namespace cudabpf::cli
