// cudabpf gaps: when the GPU was idle and why, as its own times show; where a trace has none of
// these, when it is known to have been idle, and what the program did meanwhile.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/collectives/execution_waits.hpp"
#include "analyze/energy/gaps_answer.hpp"
#include "analyze/iterations/execution.hpp"
#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

struct GapsFlags : TraceFlags {
  Top top{10};
};

Result<int> print_gaps(const GapsFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::Execution execution(reader->names(), {}, flags.top.rows, reader->facts().part);
  analyze::ExecutionWaits waits(reader->names(), execution, reader->facts().part);
  analyze::SampledGpus gpus;
  return answer(flags, *reader, {&execution, &waits, &gpus},
                {.json = [&] { return gaps_json(execution.idle(), execution.gpus(), gpus); },
                 .page =
                     [&](Page& page) {
                       add_idle_times(page, execution, flags.top.rows);
                       gpus.add_to(page);
                     }});
}

}  // namespace

void add_gaps(CLI::App& app, Action& action) {
  auto flags = std::make_shared<GapsFlags>();
  CLI::App* sub = app.add_subcommand(
      "gaps",
      "GPU idle time and its causes: measured (traces with --gpu), otherwise a lower bound");
  add_trace_flags(
      *sub, *flags,
      {"gaps traces/h200-gpt2.jsonl.zst", "gaps --top 30 traces/h200-two-gpus.jsonl.zst",
       "gaps --phase inference traces/h200-gpt2.jsonl.zst"});
  add_time(*sub, *flags);
  add_top(*sub, flags->top, "Show at most the N longest");
  sub->callback([flags, &action] { action = [flags] { return print_gaps(*flags); }; });
}

}  // namespace cudabpf::cli
