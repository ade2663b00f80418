// The phases and iterations of a run, as tracks of their own.
#include <fmt/format.h>

#include "analyze/export/tracks.hpp"
#include "analyze/iterations/iterations.hpp"
#include "analyze/iterations/phases.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf::analyze {

// Beside the tracks of the process whose thread launches most; if that process was not remembered,
// in no process.
void Tracks::draw_execution(const TraceFacts& facts) {
  at_work_.finish(facts);
  if (at_work_.threads().empty()) return;
  const ThreadWork* thread = &at_work_.threads().front();
  auto known = by_number_.find(thread->process);
  const Track* process = known == by_number_.end() ? nullptr : &known->second;
  auto add = [&](Track& track, Track::Kind kind, const char* what) {
    if (process) {
      track.pid = process->pid;
      track.process = process->process;
    }
    announce(track, kind, nullptr, process, fmt::format("{} of thread {}", what, thread->tid));
  };
  auto in_part = [&](std::uint64_t begin, std::uint64_t end) {
    return TimeSpan{part_.clipped(begin), part_.clipped(end)};
  };
  Track phases, iterations;
  Iterations found = find_iterations(*thread);
  Phases execution = find_phases(*thread, found, facts.duration());
  for (const Phase& phase : execution.phases) {
    if (!phase.seen || phase.end <= phase.begin || !part_.touches(phase.begin, phase.end)) continue;
    if (!phases.id) add(phases, Track::Kind::phases, "phases");
    out_.span(phases, in_part(phase.begin, phase.end), phase.name, {{"note", phase.note}});
  }
  for (std::size_t i = 0; i < found.each.size(); i++) {
    if (!part_.touches(found.each[i].begin, found.each[i].end)) continue;
    if (!iterations.id) add(iterations, Track::Kind::iterations, "iterations");
    const Iteration& one = found.each[i];
    std::string name = fmt::format("{} {}", i < found.warm_up ? "warm-up" : "iteration", i + 1);
    out_.span(iterations, in_part(one.begin, one.end), name,
              {{"launches", fmt::format("{}", one.launches)}});
  }
}

}  // namespace cudabpf::analyze
