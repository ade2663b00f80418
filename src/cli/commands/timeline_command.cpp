// cudabpf timeline: what each thread did when, as a picture.
#include "analyze/timeline/timeline.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.hpp"
#include "cli/reading_command.hpp"
#include "cli/request/trace_paths.hpp"

namespace cudabpf::cli {

namespace {

struct TimelineFlags : TraceFlags {
  std::string svg;
};

Result<int> print_timeline(const TimelineFlags& flags) {
  TRY(is_no_trace(flags.svg, flags.paths));
  auto reader = TRY(open_trace(flags));
  std::optional<analyze::Timeline::Window> window;  // none: it chooses what to show
  analyze::Part part = reader->facts().part;
  if (flags.part.any()) window = part;
  analyze::Timeline timeline(reader->names(), window, part.recorded_from);
  TRY(read_trace(*reader, {&timeline}));
  print_answer(flags, reader->facts(),
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
  CLI::App* sub = app.add_subcommand(
      "timeline",
      "A picture of each thread's calls, the work on each stream, and what the GPUs did");
  add_trace_flags(*sub, *flags,
                  {"timeline traces/h200-gpt2.jsonl.zst",
                   "timeline --from 14.5s --to 14.6s traces/h200-gpt2.jsonl.zst   a part of it",
                   "timeline --svg timeline.svg traces/h200-gpt2.jsonl.zst   also as a picture"});
  add_time(*sub, *flags);
  sub->add_option("--svg", flags->svg,
                  "Also draw it into this SVG file, for any browser; -: stdout")
      ->type_name("FILE");
  sub->callback([flags, &action] { action = [flags] { return print_timeline(*flags); }; });
}

}  // namespace cudabpf::cli
