#include "analyze/summary/stretch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace cudabpf::analyze {

namespace {

// What was issued in a row is waited for at the end, unless the thread does other things first.
std::optional<Moment> end_of_wait(const ThreadWork& thread, const Iterations& iterations) {
  Moment issued{iterations.end, iterations.at_end};
  auto last = std::find_if(thread.segments.begin(), thread.segments.end(),
                           [&](const Segment& one) { return one.end.ts >= issued.ts; });
  if (last == thread.segments.end()) return std::nullopt;
  Spent after = last->end.spent - issued.spent;
  bool waits = after.waiting + after.to_host >= (last->end.ts - issued.ts) / 2;
  return waits ? std::optional(last->end) : std::nullopt;
}

}  // namespace

Stretch stretch_of(const Execution& execution) {
  Stretch stretch;
  const ThreadWork* thread = execution.thread();
  if (!thread || thread->segments.empty()) return stretch;
  const Iterations& iterations = execution.iterations();
  stretch.begin = iterations.warm;
  stretch.end = iterations.end;
  stretch.rounds = iterations.count - iterations.warm_up;
  std::optional<Moment> waited;
  if (iterations.found == Iterations::Found::within_a_wait)
    waited = end_of_wait(*thread, iterations);
  if (iterations.times.count() && !waited) {  // when the last was done is not known
    stretch.is_done = iterations.found == Iterations::Found::between_waits;
    stretch.rounds = iterations.times.count();
    stretch.time = iterations.times.total();
    stretch.spent = iterations.spent;
  } else {
    Moment begin = thread->segments.front().begin, end = thread->segments.back().end;
    if (iterations.found != Iterations::Found::none) {
      begin = {iterations.warm, iterations.at_warm};
      end = waited.value_or(Moment{iterations.end, iterations.at_end});
    }
    stretch.begin = begin.ts;
    stretch.end = std::max(begin.ts, end.ts);
    stretch.time = stretch.end - stretch.begin;
    stretch.spent = end.spent - begin.spent;
  }
  stretch.launches = stretch.rounds ? stretch.rounds * iterations.launches : thread->launches;
  return stretch;
}

std::string Stretch::round_text() const {
  if (!rounds) return fmt::format("the work takes {}", human_time(time));
  return fmt::format("an iteration takes {}", human_time(time / rounds));
}

std::string Stretch::launches_text() const {
  return count_of(launches / std::max<std::uint64_t>(1, rounds), "launch", "launches");
}

}  // namespace cudabpf::analyze
