// cudabpf kernels: which kernels ran, in which configurations, in graphs too, what they do, and how
// long GPUs took for them.
#include "analyze/questions/kernels.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/flags/one_of.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

using By = analyze::Kernels::By;

struct KernelsFlags : TraceFlags {
  std::string by = "configuration";
  Top top{30};
  bool jsonl = false;
};

// A kernel on each line.
void print_lines(const analyze::Kernels& kernels, By by, const Top& top) {
  auto print = [&](const std::vector<analyze::Kernels::Figures>& all, const analyze::Json& first) {
    std::size_t shown = top.option->count() ? std::min(all.size(), top.rows) : all.size();
    for (std::size_t i = 0; i < shown; i++) {
      analyze::Json json = first;
      json.update(kernel_json(all[i], kernels));
      print_json(json, stdout, true);
    }
  };
  if (by != By::range) return print(kernels.figures(by), analyze::Json::object());
  for (const auto& group : kernels.groups()) print(group.kernels, {{"group", group.name}});
}

Result<int> print_kernels(const KernelsFlags& flags) {
  auto reader = TRY(open_trace(flags));
  if (flags.by == "line") reader->place_by_line();
  By by = *analyze::Kernels::by(flags.by);
  analyze::Kernels kernels(reader->names(), by);
  if (!flags.jsonl)
    return answer(flags, *reader, {&kernels},
                  {.json =
                       [&] {
                         analyze::Json json = analyze::kernels_json(kernels, by);
                         flags.top.cut(json, {"graphs"});
                         if (by == By::range)
                           for (analyze::Json& range : json["kernels"])
                             flags.top.cut(range, {"kernels"});
                         else
                           flags.top.cut(json, {"kernels"});
                         return json;
                       },
                   .page = [&](Page& page) { add_kernels(page, kernels, by, flags.top.rows); }});
  TRY(read_trace(*reader, {&kernels}));
  print_lines(kernels, by, flags.top);
  say_what_is_missing(reader->facts());
  return 0;
}

}  // namespace

void add_kernels(CLI::App& app, Action& action) {
  auto flags = std::make_shared<KernelsFlags>();
  CLI::App* sub = app.add_subcommand("kernels", "Which kernels ran, how, and how long");
  add_trace_flags(*sub, *flags,
                  {"kernels traces/h200-gpt2.jsonl.zst",
                   "kernels --by name --top 10 traces/h200-gpt2.jsonl.zst",
                   "kernels --by range traces/example-ranges.jsonl.zst",
                   "kernels --by line traces/example-python.jsonl.zst",
                   "kernels --iteration last traces/h200-gpt2.jsonl.zst",
                   "kernels --jsonl traces/h200-gpt2.jsonl.zst | jq -r .kernel   whole names"});
  sub->add_flag("--jsonl", flags->jsonl,
                "Print one JSON object per line, for each kernel; no totals")
      ->excludes("--json");
  add_time(*sub, *flags)->excludes("--jsonl");
  one_of(sub->add_option("--by", flags->by, "What to group launches by"),
         {"configuration", "name", "range", "line"})
      ->capture_default_str();
  add_top(*sub, flags->top, "Show at most N kernels, of each range or line with --by");
  sub->callback([flags, &action] { action = [flags] { return print_kernels(*flags); }; });
}

}  // namespace cudabpf::cli
