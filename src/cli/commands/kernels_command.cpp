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

struct KernelsFlags : TraceFlags {
  std::string by = "configuration";
  Top top{30};
  bool jsonl = false;
};

Result<int> print_kernels(const KernelsFlags& flags) {
  auto reader = TRY(open_trace(flags));
  auto by = flags.by == "name" ? analyze::Kernels::By::name : analyze::Kernels::By::configuration;
  analyze::Kernels kernels(reader->names());
  if (!flags.jsonl)
    return answer(flags, *reader, {&kernels},
                  {.json =
                       [&] {
                         analyze::Json json = analyze::kernels_json(kernels, by);
                         flags.top.cut(json, {"kernels", "graphs"});
                         return json;
                       },
                   .page = [&](Page& page) { add_kernels(page, kernels, by, flags.top.rows); }});
  TRY(read_trace(*reader, {&kernels}));
  auto all = kernels.figures(by);
  if (flags.top.option->count()) all.resize(std::min(all.size(), flags.top.rows));
  for (const auto& figures : all) print_json(kernel_json(figures, kernels), stdout, true);
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
                   "kernels --iteration last traces/h200-gpt2.jsonl.zst",
                   "kernels --jsonl traces/h200-gpt2.jsonl.zst | jq -r .kernel   whole names"});
  sub->add_flag("--jsonl", flags->jsonl,
                "Print one JSON object per line, for each kernel; no totals")
      ->excludes("--json");
  add_time(*sub, *flags)->excludes("--jsonl");
  one_of(sub->add_option("--by", flags->by, "Group launches by configuration or by name"),
         {"configuration", "name"})
      ->capture_default_str();
  add_top(*sub, flags->top, "Show at most N kernels");
  sub->callback([flags, &action] { action = [flags] { return print_kernels(*flags); }; });
}

}  // namespace cudabpf::cli
