// cudabpf gaps: when the GPU is known to have been idle, and what the program did meanwhile.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/course/idle.hpp"
#include "analyze/energy/sampled_gpus.hpp"
#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

struct GapsFlags : TraceFlags {
  Top top{10};
};

Result<int> print_gaps(const GapsFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::Idle idle(reader->names(), flags.top.rows, reader->facts().part);
  analyze::SampledGpus gpus;
  return answer(flags, *reader, {&idle, &gpus},
                {.json =
                     [&] {
                       analyze::Json json = analyze::idle_json(idle);
                       if (auto sampled = gpus.json(); !sampled.empty())
                         json["sampled_gpus"] = sampled;
                       return json;
                     },
                 .page =
                     [&](Page& page) {
                       analyze::add_idle(page, idle, flags.top.rows);
                       gpus.add_to(page);
                     }});
}

}  // namespace

void add_gaps(CLI::App& app, Action& action) {
  auto flags = std::make_shared<GapsFlags>();
  CLI::App* sub =
      app.add_subcommand("gaps", "Times when the GPU certainly had nothing to do, and why");
  add_trace_flags(
      *sub, *flags,
      {"gaps traces/h200-gpt2.jsonl.zst", "gaps --top 30 traces/h200-two-gpus.jsonl.zst",
       "gaps --phase inference traces/h200-gpt2.jsonl.zst"});
  add_time(*sub, *flags);
  add_top(*sub, flags->top, "Show at most the N longest");
  sub->callback([flags, &action] { action = [flags] { return print_gaps(*flags); }; });
}

}  // namespace cudabpf::cli
