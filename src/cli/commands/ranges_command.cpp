// cudabpf ranges: what was done in each range by which the program says what it does.
#include <nlohmann/json.hpp>

#include "analyze/ranges/ranges.hpp"
#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

Result<int> print_ranges(const TraceFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::RangeTotals ranges(reader->names());
  return answer(flags, *reader, {&ranges},
                {.json = [&] { return ranges_json(ranges); },
                 .page = [&](Page& page) { add_ranges(page, ranges, flags.top.rows); },
                 .lists = {"ranges"}});
}

}  // namespace

void add_ranges(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<TraceFlags>(
      app, action, "ranges",
      "How long the program's own ranges (NVTX) took, and what GPUs did for them", print_ranges);
  add_trace_flags(sub, flags,
                  {"ranges traces/example-ranges.jsonl.zst",
                   "ranges --json --top 3 traces/example-ranges.jsonl.zst"});
  add_time(sub, flags);
  add_top(sub, flags.top, 30, "Show at most N ranges");
}

}  // namespace cudabpf::cli
