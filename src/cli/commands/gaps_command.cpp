// cudabpf gaps: when the GPU was idle and why, as its own times show; where a trace has none of
// these, when it is known to have been idle, and what the program did meanwhile.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/collectives/execution_waits.hpp"
#include "analyze/energy/gaps_answer.hpp"
#include "analyze/iterations/execution.hpp"
#include "cli/commands.hpp"
#include "cli/flags/one_of.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

struct GapsFlags : TraceFlags {
  std::string by = "gap";
  Top top{10};
};

Result<int> print_gaps(const GapsFlags& flags) {
  auto reader = TRY(open_trace(flags));
  if (flags.by == "line") reader->place_by_line();
  auto by = flags.by == "range"  ? analyze::GapsBy::range
            : flags.by == "line" ? analyze::GapsBy::line
                                 : analyze::GapsBy::gap;
  analyze::Execution execution(reader->names(), {}, flags.top.rows, reader->facts().part);
  analyze::ExecutionWaits waits(reader->names(), execution, reader->facts().part);
  analyze::SampledGpus gpus;
  return answer(flags, *reader, {&execution, &waits, &gpus},
                {.json = [&] { return gaps_json(execution.idle(), execution.gpus(), gpus, by); },
                 .page =
                     [&](Page& page) {
                       add_idle_times(page, execution, flags.top.rows, by);
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
       "gaps --phase inference traces/h200-gpt2.jsonl.zst",
       "gaps --by range traces/example-ranges.jsonl.zst   in which of the program's ranges"});
  add_time(*sub, *flags);
  one_of(sub->add_option("--by", flags->by,
                         "List the longest gaps, or the program's ranges or lines of Python in "
                         "which they ended"),
         {"gap", "range", "line"})
      ->capture_default_str();
  add_top(*sub, flags->top, "Show at most the N longest, or N ranges or lines");
  sub->callback([flags, &action] { action = [flags] { return print_gaps(*flags); }; });
}

}  // namespace cudabpf::cli
