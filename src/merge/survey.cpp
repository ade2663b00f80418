#include "merge/survey.hpp"

#include <fmt/format.h>

#include <utility>

#include "merge/moved_lines.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::merge {

namespace {

using analyze::Line;
using analyze::LineKind;

void count(const Line& line, EventCounts& counts) {
  counts.calls += line.kind == LineKind::call || line.kind == LineKind::block;
  counts.unfinished += line.kind == LineKind::call && line.unfinished;
  counts.driver_calls += line.kind == LineKind::driver;
  counts.read_faults += line.read_fault;
}

Result<> check_first(const analyze::TraceFacts& facts) {
  if (facts.header.merged.empty()) return ok();
  return Error{analyze::input_name(facts.paths.front()) + " is itself made of several traces",
               "merge the traces that it was made of", exit_code::USAGE};
}

}  // namespace

TraceTimes Surveyed::times() const {
  const TraceHeader& header = facts.header;
  TraceTimes times;
  times.boot_id = header.boot_id;
  times.at_begin = {monotonic_of(header), header.began(), header.clock_error};
  times.since = facts.part.recorded_from;
  times.end = facts.duration();
  if (!facts.end || !facts.end->clocks || !header.clocks) return times;
  // Both ends are read in the same time namespace.
  TraceClocks end = *facts.end->clocks;
  if (!times.at_begin.monotonic || end.monotonic < header.clocks->monotonic) return times;
  times.at_end = Reading{times.at_begin.monotonic + (end.monotonic - header.clocks->monotonic),
                         end.realtime, facts.end->clock_error};
  return times;
}

Result<Surveyed> survey(std::vector<std::string> files, const MachineLines& before,
                        analyze::TraceReader::Progress progress) {
  auto reader = TRY(analyze::TraceReader::open(files, std::move(progress)));
  reader->derive_nothing();
  TRY(check_first(reader->facts()));
  std::uint64_t given = 1;
  MovedLines moved({}, given);
  Lives lives(reader->names());
  Surveyed surveyed;
  surveyed.files = std::move(files);
  while (const Line* line = TRY(reader->next())) {
    if (line->kind == LineKind::header || line->kind == LineKind::end) continue;
    if (!moved.admits(*line)) {
      surveyed.unfit++;
    } else if (before.have(*line, reader->facts().header, before.count())) {
      surveyed.repeated++;
    } else {
      count(*line, surveyed.counts);
      surveyed.has_collectives |= line->kind == LineKind::communicator;
      if (!lives.see(*line))
        return Error{fmt::format("{} has more than {} processes", surveyed.files.front(),
                                 with_commas(Lives::MAX)),
                     "whether another trace has the same ones cannot be checked"};
    }
  }
  surveyed.lives = lives.take();
  surveyed.facts = reader->facts();
  return surveyed;
}

}  // namespace cudabpf::merge
