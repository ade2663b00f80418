// cudabpf summary: one screen that answers what people ask of a trace first.
#include "analyze/summary/summary.hpp"

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

struct SummaryFlags : TraceFlags {
  bool all = false;
};

Result<int> print_summary(const SummaryFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::Summary summary(reader->names(), flags.part.whose, reader->facts().part,
                           moments_of(flags, reader->facts()));
  return answer(flags, *reader, {&summary},
                {.json = [&] { return summary.json(); },
                 .page = [&](Page& page) { summary.add_to(page, flags.all); },
                 .found_thread = [&] { return summary.found_thread(); }});
}

}  // namespace

void add_summary(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<SummaryFlags>(
      app, action, "summary",
      "One screen: what bounds the program, its phases and iterations; --all: idle times, memory, "
      "the driver",
      print_summary);
  add_trace_flags(
      sub, flags,
      {"summary traces/h200-gpt2.jsonl.zst", "summary --iteration 10-20 traces/h200-gpt2.jsonl.zst",
       "summary --pid 698 traces/h200-two-gpus.jsonl.zst   one of several processes",
       "summary --json traces/h200-gpt2.jsonl.zst | jq .summary.phases"});
  add_time(sub, flags);
  add_whose_flags(sub, flags.part);
  sub.add_flag("--all", flags.all, "Show all answers, not only what fits a screen of 24 lines");
}

}  // namespace cudabpf::cli
