// cudabpf ranges: what was done in each range by which the program says what it does.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/ranges/ranges.hpp"
#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

struct RangesFlags : TraceFlags {
  Top top{30};
};

Result<int> print_ranges(const RangesFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::RangeTotals ranges(reader->names());
  return answer(flags, *reader, {&ranges},
                {.json =
                     [&] {
                       analyze::Json json = ranges_json(ranges);
                       flags.top.cut(json, {"ranges"});
                       return json;
                     },
                 .page = [&](Page& page) { add_ranges(page, ranges, flags.top.rows); }});
}

}  // namespace

void add_ranges(CLI::App& app, Action& action) {
  auto flags = std::make_shared<RangesFlags>();
  CLI::App* sub = app.add_subcommand(
      "ranges", "How long the program's own ranges (NVTX) took, and what GPUs did for them");
  add_trace_flags(*sub, *flags,
                  {"ranges traces/example-ranges.jsonl.zst",
                   "ranges --json --top 3 traces/example-ranges.jsonl.zst"});
  add_time(*sub, *flags);
  add_top(*sub, flags->top, "Show at most N ranges");
  sub->callback([flags, &action] { action = [flags] { return print_ranges(*flags); }; });
}

}  // namespace cudabpf::cli
