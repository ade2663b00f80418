#include "analyze/summary/stretch.hpp"

#include <fmt/format.h>

namespace cudabpf::analyze {

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

std::string Stretch::round_text() const {
  if (!rounds) return fmt::format("the work takes {}", human_time(time));
  return fmt::format("an iteration takes {}", human_time(time / rounds));
}

std::string Stretch::launches_text() const {
  return count_of(launches / std::max<std::uint64_t>(1, rounds), "launch", "launches");
}

}  // namespace cudabpf::analyze
