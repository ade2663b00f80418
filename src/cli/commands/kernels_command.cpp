// cudabpf kernels: which kernels ran, in which configurations, in graphs too, what they do, and how
// long GPUs took for them.
#include "analyze/questions/kernels.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

struct KernelsFlags : TraceFlags {
  analyze::Kernels::By by = analyze::Kernels::By::configuration;
  bool jsonl = false;
};

// A kernel on each line.
void print_lines(const analyze::Kernels& kernels, analyze::Kernels::By by, const Top& top) {
  auto print = [&](const std::vector<analyze::Kernels::Figures>& all, const analyze::Json& first) {
    std::size_t shown = top.option->count() ? std::min(all.size(), top.rows) : all.size();
    for (std::size_t i = 0; i < shown; i++) {
      analyze::Json json = first;
      json.update(kernel_json(all[i], kernels));
      print_json(json, stdout, true);
    }
  };
  if (by != analyze::Kernels::By::range) return print(kernels.figures(by), analyze::Json::object());
  for (const auto& group : kernels.groups()) print(group.kernels, {{"group", group.name}});
}

Result<int> print_kernels(const KernelsFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::Kernels kernels(reader->names(), flags.by);
  if (!flags.jsonl)
    return answer(
        flags, *reader, {&kernels},
        {.json = [&] { return kernels_json(kernels, flags.by); },
         .page = [&](Page& page) { add_kernels(page, kernels, flags.by, flags.top.rows); },
         .lists = {"graphs",
                   flags.by == analyze::Kernels::By::range ? "kernels/kernels" : "kernels"}});
  TRY(read_trace(*reader, {&kernels}));
  print_lines(kernels, flags.by, flags.top);
  say_what_is_missing(reader->facts());
  return 0;
}

}  // namespace

void add_kernels(CLI::App& app, Action& action) {
  using enum analyze::Kernels::By;
  auto [sub, flags] = add_command<KernelsFlags>(
      app, action, "kernels", "Which kernels ran, how, and how long", print_kernels);
  add_trace_flags(sub, flags,
                  {"kernels traces/h200-gpt2.jsonl.zst",
                   "kernels --by name --top 10 traces/h200-gpt2.jsonl.zst",
                   "kernels --by range traces/example-ranges.jsonl.zst",
                   "kernels --by line traces/example-python.jsonl.zst",
                   "kernels --iteration last traces/h200-gpt2.jsonl.zst",
                   "kernels --jsonl traces/h200-gpt2.jsonl.zst | jq -r .kernel   whole names"});
  sub.add_flag("--jsonl", flags.jsonl, "Print one JSON object per line, for each kernel; no totals")
      ->excludes("--json");
  add_time(sub, flags)->excludes("--jsonl");
  add_by(sub, flags, flags.by,
         {{"configuration", configuration}, {"name", name}, {"range", range}, {"line", range}},
         "What to group launches by");
  add_top(sub, flags.top, 30, "Show at most N kernels, of each range or line with --by");
}

}  // namespace cudabpf::cli
