#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyze/summary/rules.hpp"
#include "state/error_meanings.hpp"

namespace cudabpf::analyze {

namespace {

// "parts 1 to 24 of it were not given"
std::string not_given(const std::vector<std::string>& missing) {
  bool several = missing.size() > 1 || missing.front().starts_with("parts");
  return fmt::format("{} of it {} not given", fmt::join(missing, " and "),
                     several ? "were" : "was");
}

// No loss is rounded down to nothing.
std::string share_of_lost(std::uint64_t lost, std::uint64_t all) {
  constexpr double LEAST_SHOWN = 0.05;
  return share(lost, all) < LEAST_SHOWN ? "less than 0.1 %" : percent(lost, all);
}

bool is_out_of_memory(const Judged& judged, const Totals::Failure& failure) {
  return judged.names.text(failure.error) == "CUDA_ERROR_OUT_OF_MEMORY";
}

}  // namespace

Found incomplete(const Judged& judged) {
  const TraceFacts& facts = judged.facts;
  auto [lost, all, uncounted, processes] = judged.lost_events();
  std::vector<std::string> what;
  if (lost || uncounted) {
    what.push_back(uncounted
                       ? fmt::format("some events were lost ({})",
                                     lost ? fmt::format("at least {}; the total is not known",
                                                        with_commas(lost))
                                          : "how many is not known")
                       : fmt::format("{} of {} were lost ({})", with_commas(lost),
                                     count_of(all, "event", "events"), share_of_lost(lost, all)));
  }
  if (processes)
    what.push_back(count_of(processes, "process was", "processes were") + " not recorded");
  if (!facts.cut_off.empty())
    what.push_back(fmt::format("the trace is cut off at {}", judged.moments.at(facts.last_ts)));
  if (!facts.missing.empty()) what.push_back(not_given(facts.missing));
  if (facts.malformed)
    what.push_back(count_of(facts.malformed, "line", "lines") + " could not be read");
  if (what.empty()) return {};
  Finding one = judged.finding("incomplete", "Incomplete");
  one.begin = 0;
  one.end = facts.duration();
  one.text = fmt::format("{}. Figures may be too low.", fmt::join(what, ", "));
  one.figures = {{"lost", static_cast<double>(lost)}};
  return one;
}

// The gravest kind of failure, then the most frequent.
Found errors(const Judged& judged) {
  const Totals::Failure* worst = nullptr;
  Weight gravest = Weight::usual;
  std::uint64_t kinds = 0;
  for (const Totals::Failure& failure : judged.totals.failures) {
    Weight weight =
        meaning_of(judged.names.text(failure.name), judged.names.text(failure.error)).weight;
    if (weight == Weight::usual || is_out_of_memory(judged, failure)) continue;
    kinds++;
    if (weight >= gravest) continue;
    gravest = weight;
    worst = &failure;
  }
  const Totals::Death* death =
      judged.totals.deaths.empty() ? nullptr : &judged.totals.deaths.front();
  if (!worst && !judged.totals.xids && !death) return {};
  Finding one = judged.finding("errors", "Errors");
  std::vector<std::string> what;
  if (judged.totals.xids)
    what.push_back("the GPU reported " +
                   count_of(judged.totals.xids, "error (Xid)", "errors (Xid)"));
  if (worst) {
    what.push_back(fmt::format("{} failed {} with {}, first at {}", judged.names.text(worst->name),
                               count_of(worst->count, "time", "times"),
                               judged.names.text(worst->error),
                               judged.moments.at(worst->first_ts)));
    if (kinds > 1)
      what.back() +=
          fmt::format(", and calls of {}", count_of(kinds - 1, "other kind", "other kinds"));
    one.calls = {worst->first_id};
    one.figures = {{"failed", static_cast<double>(worst->count)}};
    one.begin = worst->first_ts;
  }
  if (death) {
    what.push_back(fmt::format("process {} was ended by signal {} at {}", death->pid, death->signal,
                               judged.moments.at(death->ts)));
    if (!worst) one.begin = death->ts;
  }
  one.end = judged.facts.duration();
  one.text = fmt::format("{}. See `cudabpf errors`.", fmt::join(what, "; "));
  return one;
}

// "; then 74 GiB was held: 70 GiB by libtorch_cuda.so, 4 GiB by libnccl.so.2", or by which
// processes if no holder is known.
std::string who_had_it(const Judged& judged) {
  if (judged.memory.ran_out().empty()) return {};
  const OutOfMemory& out = judged.memory.ran_out().front();
  return fmt::format("; then {} was held{}{}", human_bytes(out.bytes),
                     out.gpu ? fmt::format(" on GPU {}", *out.gpu) : "",
                     biggest_text(out.holders.empty() ? out.processes : out.holders, judged.names));
}

Found out_of_memory(const Judged& judged) {
  const Totals::Failure* first = nullptr;
  std::uint64_t count = 0;
  for (const Totals::Failure& failure : judged.totals.failures) {
    if (!is_out_of_memory(judged, failure)) continue;
    count += failure.count;
    if (!first || failure.first_ts < first->first_ts) first = &failure;
  }
  if (!first) return {};
  Finding one = judged.finding("out_of_memory", "Memory");
  const MemoryPeak& peak = judged.memory.all().peaks[static_cast<std::size_t>(Memory::Side::gpu)];
  one.text = fmt::format(
      "{} because memory ran out, first {} at {}{}. At its peak {} was in use: see `cudabpf "
      "errors`.",
      count_of(count, "call failed", "calls failed"), judged.names.text(first->name),
      judged.moments.at(first->first_ts), who_had_it(judged), human_bytes(peak.bytes()));
  one.begin = first->first_ts;
  one.end = judged.facts.duration();
  one.calls = {first->first_id};
  one.figures = {{"failed", static_cast<double>(count)},
                 {"peak_bytes", static_cast<double>(peak.bytes())}};
  return one;
}

// Though --gpu was given.
Found no_gpu_times(const Judged& judged) {
  std::string why = judged.facts.not_recorded.why_no_gpu_times(judged.facts.calls);
  if (why.empty() || judged.execution.gpus().measured()) return {};
  Finding one = judged.finding("no_gpu_times", "No GPU times");
  one.end = judged.facts.duration();
  one.text = why + ".";
  return one;
}

Found no_work(const Judged& judged) {
  const Totals& totals = judged.totals;
  if (totals.launches || totals.graph_launches || !totals.transfers.empty() ||
      judged.facts.leaves_out("launches") || !totals.calls)
    return {};
  Finding one = judged.finding("no_work", "No work");
  one.end = judged.facts.duration();
  one.text = fmt::format("{}, but nothing was launched or copied.",
                         count_of(totals.calls, "CUDA call", "CUDA calls"));
  return one;
}

Found not_judged(const Judged& judged) {
  bool is_cut = judged.is_cut_before_work();
  if ((judged.can_be_judged() && !is_cut) || !judged.totals.launches) return {};
  Finding one = judged.finding("not_judged", "Not judged");
  std::string why;
  if (is_cut)
    why = "the trace is cut off before anything repeats";
  else if (judged.leaves_out_needed())
    why = "not all launches and waits are in this trace. The default profile records them";
  else if (judged.lost_too_many())
    why = "too many events were lost";
  else
    why = fmt::format("{} of {} have no duration in this trace", with_commas(judged.totals.untimed),
                      count_of(judged.totals.calls, "call", "calls"));
  one.text = fmt::format("what bounds the program is not known, since {}.", why);
  return one;
}

}  // namespace cudabpf::analyze
