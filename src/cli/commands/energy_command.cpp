// cudabpf energy: how many joules a run used, each of its phases and iterations, and each class of
// kernels.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/energy/energy.hpp"
#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

Result<int> print_energy(const TraceFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::Energy energy(reader->names(), flags.part.whose, reader->facts().part);
  TRY(read_trace(*reader, {&energy}));
  TRY(check_whose(flags.part.whose, energy.found_thread()));
  print_answer(flags, reader->facts(),
               {.json = [&] { return analyze::energy_json(energy); },
                .page = [&](Page& page) { analyze::add_energy(page, energy); }},
               stdout);
  return 0;
}

}  // namespace

void add_energy(CLI::App& app, Action& action) {
  auto flags = std::make_shared<TraceFlags>();
  CLI::App* sub = app.add_subcommand(
      "energy", "Joules that each GPU used: in total, by phase, iteration and class of kernel");
  add_trace_flags(*sub, *flags,
                  {"energy trace.jsonl   one that was recorded on a machine with a GPU",
                   "energy --phase inference --json trace.jsonl"});
  add_time(*sub, *flags);
  add_whose_flags(*sub, flags->part);
  sub->callback([flags, &action] { action = [flags] { return print_energy(*flags); }; });
}

}  // namespace cudabpf::cli
