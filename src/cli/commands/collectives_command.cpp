// cudabpf collectives: what was asked of NCCL, how long it took, and what hid it.
#include <nlohmann/json.hpp>

#include "analyze/collectives/collectives.hpp"
#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

Result<int> print_collectives(const TraceFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::Collectives collectives(reader->names(), reader->facts().part);
  return answer(flags, *reader, {&collectives},
                {.json = [&] { return collectives_json(collectives); },
                 .page = [&](Page& page) { add_collectives(page, collectives, flags.top.rows); },
                 .lists = {"collectives"}});
}

}  // namespace

void add_collectives(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<TraceFlags>(app, action, "collectives",
                                              "How long NCCL's collectives took, how fast they "
                                              "were, and how much other work overlapped them",
                                              print_collectives);
  add_trace_flags(sub, flags,
                  {"collectives traces/example-ranks.jsonl.zst",
                   "collectives --phase inference traces/h200-two-gpus.jsonl.zst"});
  add_time(sub, flags);
  add_top(sub, flags.top, 20, "Show at most N rows of each table");
}

}  // namespace cudabpf::cli
