// cudabpf summary: one screen that answers what people ask of a trace first.
#include "analyze/summary.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/trace_command.hpp"

namespace cudabpf::cli {

namespace {

struct SummaryFlags : TraceFlags {
  std::uint32_t pid = 0;
};

Result<int> print_summary(const SummaryFlags& flags) {
  auto reader = open_trace(flags.paths);
  if (!reader) return reader.error();
  analyze::Summary summary((*reader)->names(), flags.pid);
  return answer(
      flags, **reader, {&summary},
      {.json = [&] { return summary.json(); }, .page = [&](Page& page) { summary.add_to(page); }});
}

}  // namespace

void add_summary(CLI::App& app, Action& action) {
  auto flags = std::make_shared<SummaryFlags>();
  CLI::App* sub = app.add_subcommand(
      "summary", "Of a trace: phases, iterations, idle times, memory, the driver, on one screen");
  add_trace_flags(*sub, *flags);
  sub->add_option("--pid", flags->pid,
                  "Phases and iterations of this process, not of the one that launches most")
      ->type_name("PID");
  sub->callback([flags, &action] { action = [flags] { return print_summary(*flags); }; });
}

}  // namespace cudabpf::cli
