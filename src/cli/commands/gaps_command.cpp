// cudabpf gaps: when the GPU was idle and why, as its own times show; where a trace has none of
// these, when it is known to have been idle, and what the program did meanwhile.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "analyze/collectives/execution_waits.hpp"
#include "analyze/energy/gaps_answer.hpp"
#include "analyze/iterations/execution.hpp"
#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

struct GapsFlags : TraceFlags {
  analyze::GapsBy by = analyze::GapsBy::gap;
};

Result<int> print_gaps(const GapsFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::Execution execution(reader->names(), {}, flags.top.rows, reader->facts().part);
  analyze::ExecutionWaits waits(reader->names(), execution, reader->facts().part);
  analyze::SampledGpus gpus;
  return answer(
      flags, *reader, {&execution, &waits, &gpus},
      {.json = [&] { return gaps_json(execution.idle(), execution.gpus(), gpus, flags.by); },
       .page =
           [&](Page& page) {
             add_idle_times(page, execution, flags.top.rows, flags.by);
             gpus.add_to(page);
           }});
}

}  // namespace

void add_gaps(CLI::App& app, Action& action) {
  using enum analyze::GapsBy;
  auto [sub, flags] = add_command<GapsFlags>(
      app, action, "gaps",
      "GPU idle time and its causes: measured (traces with --gpu), otherwise a lower bound",
      print_gaps);
  add_trace_flags(
      sub, flags,
      {"gaps traces/h200-gpt2.jsonl.zst", "gaps --top 30 traces/h200-two-gpus.jsonl.zst",
       "gaps --phase inference traces/h200-gpt2.jsonl.zst",
       "gaps --by range traces/example-ranges.jsonl.zst   in which of the program's ranges"});
  add_time(sub, flags);
  add_by(sub, flags, flags.by, {{"gap", gap}, {"range", range}, {"line", line}},
         "List the longest gaps, or the program's ranges or lines of Python in which they ended");
  add_top(sub, flags.top, 10, "Show at most the N longest, or N ranges or lines");
}

}  // namespace cudabpf::cli
