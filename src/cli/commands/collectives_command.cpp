// cudabpf collectives: what was asked of NCCL, how long it took, and what hid it.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/collectives/collectives.hpp"
#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

struct CollectivesFlags : TraceFlags {
  Top top{20};
};

Result<int> print_collectives(const CollectivesFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::Collectives collectives(reader->names(), reader->facts().part);
  return answer(flags, *reader, {&collectives},
                {.json =
                     [&] {
                       analyze::Json json = collectives_json(collectives);
                       flags.top.cut(json, {"collectives"});
                       return json;
                     },
                 .page = [&](Page& page) { add_collectives(page, collectives, flags.top.rows); }});
}

}  // namespace

void add_collectives(CLI::App& app, Action& action) {
  auto flags = std::make_shared<CollectivesFlags>();
  CLI::App* sub = app.add_subcommand(
      "collectives", "How long NCCL's collectives took, how fast they were, and what hid them");
  add_trace_flags(*sub, *flags,
                  {"collectives traces/example-ranks.jsonl.zst",
                   "collectives --phase inference traces/h200-two-gpus.jsonl.zst"});
  add_time(*sub, *flags);
  add_top(*sub, flags->top, "Show at most N rows of each table");
  sub->callback([flags, &action] { action = [flags] { return print_collectives(*flags); }; });
}

}  // namespace cudabpf::cli
