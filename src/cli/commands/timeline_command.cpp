// cudabpf timeline: what each thread did when, as a picture.
#include "analyze/timeline/timeline.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/reading_command.hpp"
#include "cli/request/quantities.hpp"
#include "cli/request/trace_paths.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

struct TimelineFlags : TraceFlags {
  std::string from, to, svg;
};

Result<analyze::Timeline::Window> window_of(const TimelineFlags& flags) {
  analyze::Timeline::Window window;
  auto take = [](const std::string& text, const char* flag, std::uint64_t& time) -> Result<> {
    if (text.empty()) return ok();
    time = text == "0" ? 0 : TRY(parse_duration(text, flag));
    return ok();
  };
  TRY(take(flags.from, "--from", window.from));
  TRY(take(flags.to, "--to", window.to));
  if (window.to <= window.from)
    return Error{"--to is not after --from", "both are times since the trace began",
                 exit_code::USAGE};
  return window;
}

Result<int> print_timeline(const TimelineFlags& flags) {
  auto window = TRY(window_of(flags));
  TRY(is_no_trace(flags.svg, flags.paths));
  auto reader = TRY(open_trace(flags.paths));
  analyze::Timeline timeline(reader->names(), window, !flags.svg.empty());
  TRY(analyze::analyze(*reader, {&timeline}));
  const analyze::TraceFacts& facts = reader->facts();
  if (window.from && window.from >= facts.duration())
    return Error{"--from is not before the end of the trace",
                 "it ends at " + analyze::seconds(facts.duration()), exit_code::USAGE};
  print_answer(flags, facts,
               {.json =
                    [&] {
                      return analyze::Json{{"timeline", analyze::timeline_json(timeline)}};
                    },
                .page = [&](Page& page) { analyze::add_timeline(page, timeline); }},
               beside_picture(flags.svg));
  if (flags.svg.empty()) return 0;
  return write_picture(
      flags.svg,
      analyze::timeline_svg(timeline, "CUDA calls: " + analyze::input_name(flags.paths.front())));
}

}  // namespace

void add_timeline(CLI::App& app, Action& action) {
  auto flags = std::make_shared<TimelineFlags>();
  CLI::App* sub =
      app.add_subcommand("timeline", "A picture of what each thread and stream did when");
  add_trace_flags(*sub, *flags,
                  {"timeline trace.jsonl", "timeline --from 1.5s --to 1.6s trace.jsonl",
                   "timeline --svg - trace.jsonl > timeline.svg"});
  sub->add_option("--from", flags->from,
                  "Begin this long after the trace began (1.5s, 200ms, 12us, or seconds)")
      ->type_name("TIME");
  sub->add_option("--to", flags->to, "End this long after the trace began")->type_name("TIME");
  sub->add_option("--svg", flags->svg, "Also draw it into this file, for any browser; -: stdout")
      ->type_name("FILE");
  sub->callback([flags, &action] { action = [flags] { return print_timeline(*flags); }; });
}

}  // namespace cudabpf::cli
