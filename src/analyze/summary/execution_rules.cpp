#include <fmt/format.h>

#include "analyze/summary/rules.hpp"

namespace cudabpf::analyze {

namespace {
constexpr double LATE = 50;  // percent of the whole run, before the work begins
constexpr std::uint64_t LATE_AT_LEAST = 100'000'000;
constexpr std::uint64_t GROWTH = 64 << 20;  // of memory, during the work
constexpr std::uint64_t GROWTH_SHARE = 10;  // and one in so many of the bytes held before
}  // namespace

Found loading(const Judged& judged) {
  const Phases& phases = judged.execution.phases();
  const ThreadWork* thread = judged.execution.thread();
  if (!judged.part.is_whole() || !thread || thread->segments.empty()) return {};
  const Iterations& iterations = judged.execution.iterations();
  bool repeats = judged.has_iterations();
  Moment start =
      repeats ? Moment{iterations.begin, iterations.at_begin} : thread->segments.front().begin;
  std::uint64_t time = start.ts - std::min(start.ts, phases.begin), all = phases.end - phases.begin;
  if (time < LATE_AT_LEAST || share(time, all) < LATE) return {};
  Finding one = judged.finding("loading", "Loading");
  one.begin = phases.begin;
  one.end = start.ts;
  std::uint64_t outside = time - std::min(time, start.spent.in_calls);
  bool of_thread = judged.execution.others_launch();
  one.text = fmt::format(
      "the first {}{} starts {} into {}; {} of that was outside CUDA{}",
      repeats ? "iteration" : "launch", of_thread ? fmt::format(" of thread {}", thread->tid) : "",
      human_time(time), human_time(all), human_time(outside), of_thread ? " in that thread" : "");
  one.figures = {{"time_us", microseconds(time)},
                 {"outside_us", microseconds(outside)},
                 {"share", share(time, all)}};
  auto gaps = judged.execution.idle().longest_idle(Judged::GAPS);
  Judged::add_gaps(one, gaps);
  for (const Gap& gap : gaps) {
    if (gap.begin < one.begin || gap.end > one.end || share(gap.time(), time) < LATE) continue;
    one.text +=
        fmt::format("; the GPU had no work for {}, from {} (after {})", human_time(gap.time()),
                    judged.moments.at(gap.begin), judged.names.text(gap.after_name));
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
  std::uint64_t from = judged.memory.begin(), span = judged.memory.end() - from;
  if (!judged.has_iterations() || !judged.is_worth_judging() || stretch.begin < from ||
      stretch.end > judged.memory.end() || judged.memory.frees_left_out())
    return {};
  auto column_of = [&](std::uint64_t ts) {
    return std::min<std::size_t>(COLUMNS - 1,
                                 static_cast<std::size_t>(static_cast<double>(ts - from) * COLUMNS /
                                                          static_cast<double>(span)));
  };
  std::size_t first = column_of(stretch.begin), last = column_of(stretch.end);
  if (last < first + AT_LEAST) return {};
  auto levels = judged.memory.columns(judged.memory.all().curve, COLUMNS);
  auto held = [&](std::size_t column) {
    std::uint64_t bytes = 0;
    for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++)
      if (Memory::side_of(static_cast<MemoryKind>(kind)) == Memory::Side::gpu)
        bytes += levels[column].last.kinds[kind];
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
      "the memory in use grew from {} to {} during the work, {} an iteration: see `cudabpf "
      "memory`.",
      human_bytes(before), human_bytes(now),
      human_bytes(grown / std::max<std::uint64_t>(1, stretch.rounds)));
  one.figures = {{"before_bytes", static_cast<double>(before)},
                 {"after_bytes", static_cast<double>(now)}};
  return one;
}

}  // namespace cudabpf::analyze
