// cudabpf calls: how often each function was called, and how long that took.
#include "analyze/calls.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/trace_command.hpp"

namespace cudabpf::cli {

namespace {

struct CallsFlags : TraceFlags {
  std::string by = "function";
  std::size_t top = 40;
};

Result<int> print_calls(const CallsFlags& flags) {
  auto reader = open_trace(flags.paths);
  if (!reader) return reader.error();
  auto by = *analyze::Calls::by(flags.by);
  analyze::Calls calls((*reader)->names(), by);
  return answer(flags, **reader, {&calls},
                {.json =
                     [&] {
                       return analyze::Json{{"calls", analyze::calls_json(calls.groups(), by)}};
                     },
                 .page = [&](Page& page) { analyze::add_calls(page, calls.groups(), flags.top); }});
}

}  // namespace

void add_calls(CLI::App& app, Action& action) {
  auto flags = std::make_shared<CallsFlags>();
  CLI::App* sub = app.add_subcommand("calls", "Of a trace: each CUDA function's count and times");
  add_trace_flags(*sub, *flags);
  sub->add_option("--by", flags->by, "Apart for each process, thread, …")
      ->type_name("function|pid|tid|stream|kernel|container")
      ->check(CLI::IsMember({"function", "pid", "tid", "stream", "kernel", "container"})
                  .description(""))
      ->capture_default_str();
  add_top(*sub, flags->top, "At most so many functions of each");
  sub->callback([flags, &action] { action = [flags] { return print_calls(*flags); }; });
}

}  // namespace cudabpf::cli
