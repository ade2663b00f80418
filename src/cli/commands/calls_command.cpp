// cudabpf calls: how often each function was called, and how long that took.
#include "analyze/questions/calls.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/flags/one_of.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

struct CallsFlags : TraceFlags {
  std::string by = "function";
  Top top{40};
};

analyze::Json json_of(const std::vector<analyze::Calls::Group>& groups, analyze::Calls::By by,
                      const Top& top) {
  analyze::Json json = {{"calls", analyze::calls_json(groups, by)}};
  if (by == analyze::Calls::By::function)
    top.cut(json, {"calls"});
  else
    for (analyze::Json& group : json["calls"]) top.cut(group, {"functions"});
  return json;
}

Result<int> print_calls(const CallsFlags& flags) {
  auto reader = TRY(open_trace(flags));
  if (flags.by == "line") reader->place_by_line();
  auto by = *analyze::Calls::by(flags.by);
  analyze::Calls calls(reader->names(), by);
  return answer(
      flags, *reader, {&calls},
      {.json = [&] { return json_of(calls.groups(), by, flags.top); },
       .page = [&](Page& page) { analyze::add_calls(page, calls.groups(), flags.top.rows); }});
}

}  // namespace

void add_calls(CLI::App& app, Action& action) {
  auto flags = std::make_shared<CallsFlags>();
  CLI::App* sub =
      app.add_subcommand("calls", "How often each CUDA function was called, and how long it took");
  add_trace_flags(
      *sub, *flags,
      {"calls traces/h200-gpt2.jsonl.zst", "calls --by stream --top 5 traces/h200-gpt2.jsonl.zst",
       "calls --phase inference traces/h200-gpt2.jsonl.zst",
       "calls --json traces/h200-gpt2.jsonl.zst | jq '.calls[0]'"});
  add_time(*sub, *flags);
  one_of(sub->add_option("--by", flags->by, "What to group the calls by"),
         {"function", "pid", "tid", "device", "stream", "kernel", "range", "line", "container"})
      ->capture_default_str();
  add_top(*sub, flags->top, "Show at most N functions per group");
  sub->callback([flags, &action] { action = [flags] { return print_calls(*flags); }; });
}

}  // namespace cudabpf::cli
