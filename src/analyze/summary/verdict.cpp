#include "analyze/summary/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "analyze/questions/error_meanings.hpp"

namespace cudabpf::analyze {

namespace {

using Found = std::optional<Finding>;
using Sure = Finding::Sure;
constexpr std::uint64_t MS = 1'000'000;

// When a finding is worth a person's time. Shares are in percent of the work that is judged.
constexpr double WAITS_LITTLE = 10;  // the GPU keeps up with what it is given
constexpr double WAITS_MUCH = 50;    // the program waits for the GPU most of the time
constexpr double HARDLY_WAITS = 2;   // there is no doubt that the GPU keeps up
constexpr double MOSTLY_WAITS = 80;  // nor that the program waits for it
constexpr double COPIES_MUCH = 20;   // in copies to the GPU
constexpr double ALLOCATES_MUCH = 15;
constexpr double LOADS_MUCH = 15;  // code, while it should work
constexpr double OTHERS_MUCH = 25;
constexpr double UNTIMED_MUCH = 5;  // of all calls: too many to judge the others
constexpr double LATE = 50;         // of the whole run, before the work begins
constexpr std::uint64_t LATE_AT_LEAST = 100 * MS;
constexpr double WORK_AT_LEAST = 10;  // of the run, if nothing repeats
constexpr std::uint64_t SLOW_LAUNCH =
    50'000;  // a launch takes this long if the GPU's queue is full
constexpr double SLOW_LAUNCHES = 30;
constexpr std::uint64_t GROWTH = 64 << 20;  // of memory, during the work
constexpr std::uint64_t GROWTH_SHARE = 10;  // and of what was held before

// The work that is judged: iterations after warm-up; where nothing repeats, all from the first
// launch to the end of the last wait.
struct Stretch {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t time = 0;  // less than from begin to end if there are pauses between iterations
  std::uint64_t rounds = 0;
  std::uint64_t launches = 0;  // in all rounds
  Spent spent;

  double share(std::uint64_t part) const { return analyze::share(part, time); }
  // A copy to the host waits for the work before it.
  std::uint64_t waiting() const { return spent.waiting + spent.to_host; }
  std::uint64_t outside() const { return time - std::min(time, spent.in_calls); }
  std::uint64_t others() const {
    std::uint64_t told =
        spent.launching + spent.memory + spent.module + spent.to_device + waiting();
    return spent.in_calls - std::min(spent.in_calls, told);
  }
  bool is_queue_full() const {
    return launches && spent.launching / launches >= SLOW_LAUNCH &&
           share(spent.launching) >= SLOW_LAUNCHES;
  }
};

Stretch stretch_of(const Course& course) {
  Stretch stretch;
  const ThreadWork* thread = course.thread();
  if (!thread || thread->segments.empty()) return stretch;
  const Iterations& iterations = course.iterations();
  stretch.begin = iterations.warm;
  stretch.end = iterations.end;
  stretch.rounds = iterations.count - iterations.warm_up;
  if (iterations.found == Iterations::Found::between_waits && iterations.times.count()) {
    stretch.rounds = iterations.times.count();
    stretch.time = iterations.times.total();
    stretch.spent = iterations.spent;
  } else {
    Moment begin = thread->segments.front().begin, end = thread->segments.back().end;
    if (iterations.found != Iterations::Found::none) {
      // What was asked for in a row is waited for at the end.
      auto last =
          std::find_if(thread->segments.begin(), thread->segments.end(),
                       [&](const Segment& segment) { return segment.end.ts >= iterations.end; });
      begin = {iterations.warm, iterations.at_warm};
      end = last != thread->segments.end() ? last->end : Moment{iterations.end, iterations.at_end};
    }
    stretch.begin = begin.ts;
    stretch.end = std::max(begin.ts, end.ts);
    stretch.time = stretch.end - stretch.begin;
    stretch.spent = end.spent - begin.spent;
  }
  stretch.launches = stretch.rounds ? stretch.rounds * iterations.launches : thread->launches;
  return stretch;
}

struct Judged : Seen {
  explicit Judged(const Seen& seen) : Seen(seen), stretch(stretch_of(course)) {}

  Stretch stretch;

  bool has_iterations() const { return course.iterations().found != Iterations::Found::none; }
  bool is_worth_judging() const {
    return stretch.time &&
           (has_iterations() ||
            share(stretch.time, course.phases().end - course.phases().begin) >= WORK_AT_LEAST);
  }
  bool can_be_judged() const {
    return share(totals.untimed - totals.unfinished, totals.calls) < UNTIMED_MUCH &&
           !facts.leaves_out("launches") && !facts.leaves_out("waits");
  }
  Finding finding(std::string_view id, std::string_view title, Sure sure = Sure::known) const {
    Finding one;
    one.id = id;
    one.title = title;
    one.sure = sure;
    one.begin = stretch.begin;
    one.end = stretch.end;
    return one;
  }
  void add_call(Finding& one, std::uint64_t id) const {
    if (id && std::find(one.calls.begin(), one.calls.end(), id) == one.calls.end())
      one.calls.push_back(id);
  }
  // Of the slowest calls, those in a finding's time.
  void add_slowest(Finding& one) const {
    for (const Slow& slow : totals.slowest)
      if (slow.ts >= one.begin && slow.ts + slow.duration <= one.end) add_call(one, slow.id);
  }
  // The calls before and after each gap in a finding's time.
  void add_gaps(Finding& one, const std::vector<Gap>& gaps) const {
    for (const Gap& gap : gaps) {
      if (gap.begin < one.begin || gap.end > one.end) continue;
      add_call(one, gap.after);
      add_call(one, gap.until);
    }
  }
  // "an iteration takes 5.18 ms"
  std::string round_text() const {
    if (!stretch.rounds) return fmt::format("the work takes {}", human_time(stretch.time));
    return fmt::format("an iteration takes {}", human_time(stretch.time / stretch.rounds));
  }
  std::string part_text(std::uint64_t part) const { return percent(part, stretch.time); }
  std::string launches_text() const {
    std::uint64_t launches = stretch.launches / std::max<std::uint64_t>(1, stretch.rounds);
    return count_of(launches, "launch", "launches");
  }
};

Found incomplete(const Judged& judged) {
  const TraceFacts& facts = judged.facts;
  std::uint64_t lost = 0;
  bool uncounted = false;
  for (const auto& [reason, loss] : facts.losses) {
    if (loss.degraded) continue;
    lost += loss.count;
    uncounted |= loss.uncounted;
  }
  std::vector<std::string> what;
  if (lost || uncounted) {
    std::uint64_t all = lost + facts.calls + facts.operations;
    what.push_back(!lost ? std::string("an unknown number of events were lost")
                   : uncounted
                       ? fmt::format("more than {} of all events were lost", percent(lost, all))
                       : fmt::format("{} of all events were lost", percent(lost, all)));
  }
  if (!facts.cut_off.empty())
    what.push_back(fmt::format("the trace is cut off at {}", seconds(facts.last_ts)));
  if (!facts.missing.empty())
    what.push_back(count_of(facts.missing.size(), "file of it was", "files of it were") +
                   " not given");
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

bool is_out_of_memory(const Judged& judged, const Totals::Failure& failure) {
  return judged.names.text(failure.error) == "CUDA_ERROR_OUT_OF_MEMORY";
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
                               judged.names.text(worst->error), seconds(worst->first_ts)));
    if (kinds > 1)
      what.back() +=
          fmt::format(", and calls of {}", count_of(kinds - 1, "other kind", "other kinds"));
    one.calls = {worst->first_id};
    one.figures = {{"failed", static_cast<double>(worst->count)}};
    one.begin = worst->first_ts;
  }
  if (death) {
    what.push_back(fmt::format("process {} was ended by signal {} at {}", death->pid, death->signal,
                               seconds(death->ts)));
    if (!worst) one.begin = death->ts;
  }
  one.end = judged.facts.duration();
  one.text = fmt::format("{}. `cudabpf errors` tells more.", fmt::join(what, "; "));
  return one;
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
      "{} for want of memory, first {} at {}; these processes held {} at most. `cudabpf "
      "memory` tells what held it.",
      count_of(count, "call failed", "calls failed"), judged.names.text(first->name),
      seconds(first->first_ts), human_bytes(peak.bytes()));
  one.begin = first->first_ts;
  one.end = judged.facts.duration();
  one.calls = {first->first_id};
  one.figures = {{"failed", static_cast<double>(count)},
                 {"peak_bytes", static_cast<double>(peak.bytes())}};
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
  if (judged.can_be_judged() || !judged.totals.launches) return {};
  Finding one = judged.finding("not_judged", "Not judged");
  one.text =
      "what bounds the program is not known, since not all launches and waits are in "
      "this trace with their durations. The default profile records them.";
  return one;
}

bool is_gpu_bound(const Stretch& stretch) {
  return stretch.share(stretch.waiting()) >= WAITS_MUCH || stretch.is_queue_full();
}

Found gpu_bound(const Judged& judged) {
  const Stretch& stretch = judged.stretch;
  if (!is_gpu_bound(stretch)) return {};
  bool by_waits = stretch.share(stretch.waiting()) >= WAITS_MUCH;
  Finding one =
      judged.finding("gpu_bound", "GPU-bound",
                     stretch.share(stretch.waiting()) >= MOSTLY_WAITS ? Sure::known : Sure::likely);
  std::string how =
      by_waits
          ? fmt::format(
                "{} of it waiting for the GPU{}", judged.part_text(stretch.waiting()),
                stretch.spent.to_host > stretch.spent.waiting ? " in copies to the host" : "")
          : fmt::format("{} of it launching, {} a launch, as is usual when the GPU's queue is full",
                        judged.part_text(stretch.spent.launching),
                        human_time(stretch.spent.launching / stretch.launches));
  one.text =
      fmt::format("{}, {}. Faster kernels or less work would help, fewer launches would not.",
                  judged.round_text(), how);
  judged.add_slowest(one);
  return one;
}

bool keeps_up(const Stretch& stretch) {
  return !is_gpu_bound(stretch) && stretch.share(stretch.waiting()) < WAITS_LITTLE;
}

Found host_bound(const Judged& judged) {
  const Stretch& stretch = judged.stretch;
  if (!keeps_up(stretch) || stretch.share(stretch.outside() + stretch.spent.launching) < WAITS_MUCH)
    return {};
  Finding one =
      judged.finding("host_bound", "Host-bound",
                     stretch.share(stretch.waiting()) < HARDLY_WAITS ? Sure::known : Sure::likely);
  std::string how = stretch.outside() >= stretch.spent.launching
                        ? fmt::format("{} of it outside CUDA between {}",
                                      judged.part_text(stretch.outside()), judged.launches_text())
                        : fmt::format("{} of it in {}", judged.part_text(stretch.spent.launching),
                                      judged.launches_text());
  one.text = fmt::format(
      "{}, {}; the GPU was waited for {}. Fewer launches would help (CUDA graphs, torch.compile).",
      judged.round_text(), how, judged.part_text(stretch.waiting()));
  judged.add_gaps(one, judged.course.idle().longest_between());
  return one;
}

// Calls that take much of the work's time, though they bring it no further.
struct Burden {
  std::string_view id;
  double at_least;
  std::uint64_t (*time_of)(const Stretch&);
  std::string_view title, text;
};
constexpr Burden BURDENS[] = {
    {"copies", COPIES_MUCH, [](const Stretch& stretch) { return stretch.spent.to_device; },
     "Copies",
     "in copies to the GPU. Copy less, from pinned memory, or beside the kernels in another "
     "stream."},
    {"allocating", ALLOCATES_MUCH, [](const Stretch& stretch) { return stretch.spent.memory; },
     "Blocked on memory",
     "in calls that allocate, free and map it. Keep memory, or take it from a pool."},
    {"loading_code", LOADS_MUCH, [](const Stretch& stretch) { return stretch.spent.module; },
     "Blocked on code",
     "in calls that load and compile it, even after warm-up. Load all of it before."},
    {"other_calls", OTHERS_MUCH, [](const Stretch& stretch) { return stretch.others(); },
     "Blocked on other calls",
     "in calls that neither launch, copy, wait nor allocate. `cudabpf calls` tells which."},
};

Found burden(const Judged& judged, const Burden& burden) {
  std::uint64_t time = burden.time_of(judged.stretch);
  if (judged.stretch.share(time) < burden.at_least) return {};
  Finding one = judged.finding(burden.id, burden.title);
  one.text =
      fmt::format("{}, {} of it {}", judged.round_text(), judged.part_text(time), burden.text);
  judged.add_slowest(one);
  return one;
}

Finding mixed(const Judged& judged) {
  const Stretch& stretch = judged.stretch;
  Finding one = judged.finding("mixed", "Mixed");
  one.text = fmt::format(
      "{}, {} of it outside CUDA, {} in {} and {} waiting for the GPU: no single thing bounds it.",
      judged.round_text(), judged.part_text(stretch.outside()),
      judged.part_text(stretch.spent.launching), judged.launches_text(),
      judged.part_text(stretch.waiting()));
  judged.add_slowest(one);
  return one;
}

// What bounds the work, if there is enough of it.
std::vector<Finding> bounds(const Judged& judged) {
  std::vector<Finding> found;
  if (!judged.is_worth_judging() || !judged.can_be_judged()) return found;
  const Stretch& stretch = judged.stretch;
  auto add = [&](Found one) {
    if (one) found.push_back(std::move(*one));
  };
  add(gpu_bound(judged));
  add(host_bound(judged));
  for (const Burden& one : BURDENS) add(burden(judged, one));
  if (found.empty()) found.push_back(mixed(judged));
  for (Finding& one : found) {
    judged.add_call(one, judged.course.iterations().typical.first_call);
    one.figures = {{"time_us", microseconds(stretch.time)},
                   {"rounds", static_cast<double>(stretch.rounds)},
                   {"launches", static_cast<double>(stretch.launches)},
                   {"outside_share", stretch.share(stretch.outside())},
                   {"launching_share", stretch.share(stretch.spent.launching)},
                   {"waiting_share", stretch.share(stretch.waiting())},
                   {"to_device_share", stretch.share(stretch.spent.to_device)},
                   {"memory_share", stretch.share(stretch.spent.memory)},
                   {"module_share", stretch.share(stretch.spent.module)},
                   {"others_share", stretch.share(stretch.others())}};
  }
  return found;
}

Found late(const Judged& judged) {
  const Phases& phases = judged.course.phases();
  const ThreadWork* thread = judged.course.thread();
  if (!thread || thread->segments.empty()) return {};
  const Iterations& iterations = judged.course.iterations();
  bool repeats = judged.has_iterations();
  Moment start =
      repeats ? Moment{iterations.begin, iterations.at_begin} : thread->segments.front().begin;
  std::uint64_t time = start.ts - std::min(start.ts, phases.begin), all = phases.end - phases.begin;
  if (time < LATE_AT_LEAST || share(time, all) < LATE) return {};
  Finding one = judged.finding("loading", "Loading");
  one.begin = phases.begin;
  one.end = start.ts;
  std::uint64_t outside = time - std::min(time, start.spent.in_calls);
  one.text = fmt::format("{} of {} before the first {}, {} of it outside CUDA", human_time(time),
                         human_time(all), repeats ? "iteration" : "launch", human_time(outside));
  one.figures = {{"time_us", microseconds(time)},
                 {"outside_us", microseconds(outside)},
                 {"share", share(time, all)}};
  judged.add_gaps(one, judged.course.idle().longest_idle());
  for (const Gap& gap : judged.course.idle().longest_idle()) {
    if (gap.begin < one.begin || gap.end > one.end || share(gap.time(), time) < LATE) continue;
    one.text += fmt::format("; {} of that from {} on, after {}", human_time(gap.time()),
                            seconds(gap.begin), judged.names.text(gap.after_name));
    break;
  }
  one.text += ".";
  judged.add_slowest(one);
  return one;
}

// Whether what is held grows all the time while it works.
Found memory_growth(const Judged& judged) {
  constexpr std::size_t COLUMNS = 512, AT_LEAST = 8;
  const Stretch& stretch = judged.stretch;
  std::uint64_t duration = judged.memory.duration();
  if (!judged.has_iterations() || !duration || stretch.end > duration ||
      judged.memory.frees_left_out())
    return {};
  auto column_of = [&](std::uint64_t ts) {
    return std::min<std::size_t>(COLUMNS - 1,
                                 static_cast<std::size_t>(static_cast<double>(ts) * COLUMNS /
                                                          static_cast<double>(duration)));
  };
  std::size_t first = column_of(stretch.begin), last = column_of(stretch.end);
  if (last < first + AT_LEAST) return {};
  auto levels = judged.memory.columns(judged.memory.all().curve, COLUMNS);
  auto held = [&](std::size_t column) {
    std::uint64_t bytes = 0;
    for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++)
      if (Memory::side_of(static_cast<MemoryKind>(kind)) == Memory::Side::gpu)
        bytes += levels[column].last[kind];
    return bytes;
  };
  constexpr std::size_t QUARTERS = 4;
  std::uint64_t before = held(first), now = before;
  for (std::size_t quarter = 1; quarter <= QUARTERS; quarter++) {
    // Up to just before the end: afterwards a program may give up all of it.
    std::uint64_t then = held(first + (last - 1 - first) * quarter / QUARTERS);
    if (then <= now) return {};
    now = then;
  }
  std::uint64_t grown = now - before;
  if (grown < GROWTH || grown < before / GROWTH_SHARE) return {};
  Finding one = judged.finding("memory_growth", "Memory");
  one.text = fmt::format(
      "what is held grew from {} to {} while it worked, {} an iteration. `cudabpf memory` tells "
      "what holds it.",
      human_bytes(before), human_bytes(now),
      human_bytes(grown / std::max<std::uint64_t>(1, stretch.rounds)));
  one.figures = {{"before_bytes", static_cast<double>(before)},
                 {"after_bytes", static_cast<double>(now)}};
  return one;
}

}  // namespace

std::vector<Finding> find_verdict(const Seen& seen) {
  Judged judged(seen);
  std::vector<Finding> found;
  auto add = [&](Found one) {
    if (one) found.push_back(std::move(*one));
  };
  for (auto rule : {incomplete, errors, out_of_memory, no_work, not_judged}) add(rule(judged));
  for (Finding& one : bounds(judged)) found.push_back(std::move(one));
  for (auto rule : {late, memory_growth}) add(rule(judged));
  return found;
}

}  // namespace cudabpf::analyze
