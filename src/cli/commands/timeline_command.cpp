// cudabpf timeline: what each thread did when, as a picture.
#include "analyze/timeline/timeline.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

Result<int> print_timeline(const TraceFlags& flags) {
  auto reader = TRY(open_trace(flags));
  std::optional<analyze::Timeline::Window> window;  // none: it chooses what to show
  analyze::Part part = reader->facts().part;
  if (flags.part.any()) window = part;
  analyze::Timeline timeline(reader->names(), window, part.recorded_from);
  return answer(flags, *reader, {&timeline},
                {.json =
                     [&] {
                       return analyze::Json{{"timeline", timeline_json(timeline)}};
                     },
                 .page = [&](Page& page) { add_timeline(page, timeline); },
                 .svg =
                     [&] {
                       return timeline_svg(
                           timeline, "CUDA calls: " + analyze::input_name(flags.paths.front()));
                     }});
}

}  // namespace

void add_timeline(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<TraceFlags>(
      app, action, "timeline",
      "A picture of each thread's calls, the work on each stream, and what the GPUs did",
      print_timeline);
  add_trace_flags(sub, flags,
                  {"timeline traces/h200-gpt2.jsonl.zst",
                   "timeline --from 14.5s --to 14.6s traces/h200-gpt2.jsonl.zst   a part of it",
                   "timeline --svg timeline.svg traces/h200-gpt2.jsonl.zst   also as a picture"});
  add_time(sub, flags);
  add_svg(sub, flags);
}

}  // namespace cudabpf::cli
