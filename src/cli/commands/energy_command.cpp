// cudabpf energy: how many joules a run used, each of its phases and iterations, and each class of
// kernels.
#include <nlohmann/json.hpp>

#include "analyze/energy/energy.hpp"
#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

Result<int> print_energy(const TraceFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::Energy energy(reader->names(), flags.part.whose, reader->facts().part);
  return answer(flags, *reader, {&energy},
                {.json = [&] { return energy_json(energy); },
                 .page = [&](Page& page) { add_energy(page, energy); },
                 .found_thread = [&] { return energy.found_thread(); }});
}

}  // namespace

void add_energy(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<TraceFlags>(
      app, action, "energy",
      "Joules that each GPU used: in total, by phase, iteration and class of kernel", print_energy);
  add_trace_flags(sub, flags,
                  {"energy trace.jsonl   one that was recorded on a machine with a GPU",
                   "energy --phase inference --json trace.jsonl"});
  add_time(sub, flags);
  add_whose_flags(sub, flags.part);
}

}  // namespace cudabpf::cli
