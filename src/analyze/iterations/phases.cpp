#include "analyze/iterations/phases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyze/gaps/gpus_at_work.hpp"
#include "util/page/table.hpp"

namespace cudabpf::analyze {

namespace {

// When the last weights were on the GPU: the last large copy before the work begins.
Moment weights_there(const ThreadWork& thread, std::uint64_t work_begins) {
  Moment there;
  for (const Moment& copy : thread.large_copies)
    if (copy.ts <= work_begins) there = copy;
  return there;
}

// Windows in order; the time of some of their calls goes to separate phases.
class Division {
 public:
  enum class Takes : std::uint8_t { code, all };  // from a window: code, or copies and waits, too

  // What lies before `begin` or after `end` is in no window.
  Division(const Moment& begin, const Moment& end) : begin_(begin), end_(end), from_(begin) {}

  Phase window(std::string name, Moment to, Takes takes, std::string note = {}) {
    if (to.ts < begin_.ts) to = begin_;
    if (to.ts > end_.ts) to = end_;
    to.ts = std::max(to.ts, from_.ts);
    Spent spent = to.spent - from_.spent;
    if (takes == Takes::code) spent.to_device = spent.to_host = spent.waiting = 0;
    apart_.module += spent.module;
    apart_.to_device += spent.to_device;
    apart_.to_host += spent.to_host;
    apart_.waiting += spent.waiting;
    std::uint64_t length = to.ts - from_.ts;
    std::uint64_t out = spent.module + spent.to_device + spent.to_host + spent.waiting;
    Phase phase;
    phase.name = std::move(name);
    phase.seen = true;
    phase.time = length - std::min(out, length);
    phase.calls = spent.calls;
    phase.in_calls = std::min(spent.in_calls - std::min(out, spent.in_calls), phase.time);
    phase.begin = from_.ts;
    phase.end = to.ts;
    phase.note = std::move(note);
    from_ = to;
    return phase;
  }

  const Spent& apart() const { return apart_; }

 private:
  Moment begin_, end_, from_;
  Spent apart_;
};

Phase not_seen(std::string name, std::string why) {
  Phase phase;
  phase.name = std::move(name);
  phase.note = std::move(why);
  return phase;
}

Phase of_calls(std::string name, std::uint64_t time) {
  Phase phase = not_seen(std::move(name), "no time recorded");
  if (!time) return phase;
  phase.seen = true;
  phase.time = time;
  phase.note.clear();
  return phase;
}

std::string iterations_text(const Iterations& iterations) {
  std::string text =
      count_of(iterations.in_part - iterations.warm_up_in_part, "iteration", "iterations");
  if (!iterations.times.count()) return text;
  return text + fmt::format(", p50 {}", human_time(iterations.time_at(0.5)));
}

}  // namespace

Phases find_phases(const ThreadWork& thread, const Iterations& iterations, std::uint64_t trace_end,
                   const Part& part) {
  using Takes = Division::Takes;
  Phases found;
  found.begin = part.clipped(std::min(thread.process_began, thread.first_call));
  found.end = part.clipped(
      std::max(thread.process_ended ? thread.process_ended : trace_end, thread.last_end));
  bool repeats = iterations.found != Iterations::Found::none;
  Moment set_up = thread.set_up.ts ? thread.set_up : Moment{thread.last_end, thread.all};
  Moment worked =
      thread.segments.empty() ? Moment{thread.last_end, thread.all} : thread.segments.back().end;
  Moment weights = weights_there(thread, repeats ? iterations.begin : worked.ts);
  if (weights.ts) found.loading_calls = weights.spent.calls - set_up.spent.calls;

  Division division({found.begin, thread.at_from}, {found.end, thread.at_to});
  Phase before = division.window("before the first call", {thread.first_call, {}}, Takes::code);
  Phase initialisation = division.window("initialisation", set_up, Takes::code);
  Phase loading = not_seen("loading", "no large copy to the GPU");
  if (weights.ts) {
    loading = division.window("loading", weights, Takes::code);
    loading.note = fmt::format("{} of it in {}", human_time(loading.in_calls),
                               count_of(loading.calls, "CUDA call", "CUDA calls"));
  }
  constexpr const char* NOTHING = "no sequence repeats";
  Phase warm_up = not_seen("warm-up", NOTHING), inference;
  if (repeats) {
    warm_up = division.window(
        "warm-up", {iterations.warm, iterations.at_warm}, Takes::all,
        iterations.warm_up_in_part
            ? count_of(iterations.warm_up_in_part, "slow iteration", "slow iterations")
            : std::string("no slow iteration"));
    inference = division.window("inference", {iterations.end, iterations.at_end}, Takes::all,
                                iterations_text(iterations));
  } else {
    inference = division.window("work", worked, Takes::all, NOTHING);
  }
  inference.is_work = true;
  Phase clean_up = division.window("clean-up", {found.end, thread.at_to}, Takes::all);
  if (!set_up.spent.calls)
    initialisation = not_seen("initialisation", "not here: earlier, or elsewhere");

  const Spent& apart = division.apart();
  found.phases = {std::move(before),
                  std::move(initialisation),
                  std::move(loading),
                  of_calls("input transfer", apart.to_device),
                  of_calls("modules and compiling", apart.module),
                  std::move(warm_up),
                  std::move(inference),
                  of_calls("synchronisation", apart.waiting),
                  of_calls("output transfer", apart.to_host),
                  std::move(clean_up)};
  if (!part.is_whole())
    std::erase_if(found.phases, [](const Phase& phase) {
      return !phase.seen || (phase.end && phase.begin == phase.end);
    });
  return found;
}

Json phases_json(const Phases& phases) {
  Json json = Json::array();
  for (const Phase& phase : phases.phases) {
    Json one = {{"name", phase.name}, {"seen", phase.seen}};
    if (phase.seen) {
      one["time_us"] = microseconds(phase.time);
      one["share"] = share(phase.time, phases.end - phases.begin);
    }
    if (phase.end) {
      one["begin_us"] = microseconds(phase.begin);
      one["end_us"] = microseconds(phase.end);
      one["calls"] = phase.calls;
      one["in_calls_us"] = microseconds(phase.in_calls);
      if (phase.gpu) one["gpu"] = gpu_share_json(*phase.gpu);
    }
    if (!phase.note.empty()) one["note"] = phase.note;
    json.push_back(std::move(one));
  }
  return json;
}

void add_phases(Page& page, const Phases& phases, bool all) {
  constexpr std::uint64_t WORTH_SHOWING = 2000;  // the part that is rounded to 0.0 %
  Table table("phases", {{"time"}, {"share"}, {"", 1, true}});
  for (const Phase& phase : phases.phases) {
    if (!all && phase.time < (phases.end - phases.begin) / WORTH_SHOWING) continue;
    table.row(phase.name,
              {phase.seen ? human_time(phase.time) : "-",
               phase.seen ? percent(phase.time, phases.end - phases.begin) : "", phase.note});
  }
  table.add_to(page);
}

}  // namespace cudabpf::analyze
