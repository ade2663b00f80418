#include "analyze/summary/judged.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cudabpf/event.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {
constexpr double LOST_MUCH = 10;      // percent of all events: the others say too little
constexpr double UNTIMED_MUCH = 5;    // percent of all calls: too many to judge the others
constexpr double WORK_AT_LEAST = 10;  // percent of the run, if nothing repeats
// ns. What a framework does for a launch takes less than this; more is other work.
constexpr std::uint64_t FOR_A_LAUNCH = 50'000;
}  // namespace

bool Judged::can_be_judged() const {
  std::uint64_t untimed = totals.untimed - std::min(totals.untimed, totals.unfinished);
  return share(untimed, totals.calls) < UNTIMED_MUCH && !leaves_out_needed() && !lost_too_many();
}

LostEvents Judged::lost_events() const {
  LostEvents found;
  for (const auto& [reason, loss] : facts.losses) {
    if (loss.degraded) continue;
    bool of_process = reason == info(Loss::process_unrecorded).name;
    std::uint64_t& sum = of_process ? found.processes : found.lost;
    sum = saturating_sum(sum, loss.count);  // a trace may claim any number
    found.uncounted |= !of_process && loss.uncounted;
  }
  // A call may be two events, its beginning and its end, each with a record.
  bool counted = facts.end && facts.end->accounts;
  found.all = saturating_sum(
      found.lost, counted ? facts.end->accounts->received : facts.calls + facts.operations);
  return found;
}

bool Judged::lost_too_many() const {
  LostEvents events = lost_events();
  return share(events.lost, events.all) >= LOST_MUCH;
}

bool Judged::leaves_out_needed() const {
  return facts.leaves_out("launches") || facts.leaves_out("waits");
}

// Where a trace is cut off before anything repeats, what it has may be loading alone.
bool Judged::is_cut_before_work() const { return !facts.cut_off.empty() && !has_iterations(); }

bool Judged::is_worth_judging() const {
  if (is_cut_before_work()) return false;
  if (!part.is_whole()) {
    // Only the wait at the end shows how long the GPU takes for what was issued in a row.
    bool issued_in_a_row = execution.iterations().found == Iterations::Found::within_a_wait;
    if (issued_in_a_row && (stretch.begin < part.from || stretch.end > part.to)) return false;
    return execution.iterations().times.count();
  }
  if (!stretch.time || has_iterations()) return stretch.time;
  return share(stretch.time, execution.phases().end - execution.phases().begin) >= WORK_AT_LEAST;
}

std::string Judged::host_advice() const {
  if (totals.graph_launches > totals.launched() / 2)
    return "Most launches are of graphs: fewer, larger ones or less between them would help.";
  std::uint64_t outside = stretch.outside(), launching = stretch.spent.launching;
  std::uint64_t each = outside / std::max<std::uint64_t>(1, stretch.launches);
  std::uint64_t of_host = stretch.time - std::min(stretch.time, stretch.waiting());
  std::uint64_t for_launches = launching + (each <= FOR_A_LAUNCH ? outside : 0);
  if (for_launches < of_host / 2)
    return outside > of_host / 2
               ? fmt::format(
                     "Reducing launches alone will not help: the host spends {} per launch outside "
                     "CUDA.",
                     human_time(each))
               : fmt::format(
                     "Reducing launches alone will not help: launching takes {} of it. "
                     "`cudabpf gaps` and `calls` show what the host does.",
                     stretch.part_text(launching));
  return "Fewer launches would help (CUDA graphs, torch.compile).";
}

Finding Judged::finding(std::string_view id, std::string_view title, Finding::Sure sure) const {
  Finding finding;
  finding.id = id;
  finding.title = title;
  finding.sure = sure;
  finding.begin = part.clipped(stretch.begin);
  finding.end = part.clipped(stretch.end);
  return finding;
}

void Judged::add_slowest(Finding& finding) const {
  for (const Slow& slow : totals.slowest)
    if (slow.ts >= finding.begin && slow.ts + slow.duration <= finding.end)
      finding.add_call(slow.id);
}

void Judged::add_gaps(Finding& finding, std::span<const Gap> gaps) {
  for (const Gap& gap : gaps) {
    if (gap.begin < finding.begin || gap.end > finding.end) continue;
    finding.add_call(gap.after);
    finding.add_call(gap.until);
  }
}

}  // namespace cudabpf::analyze
