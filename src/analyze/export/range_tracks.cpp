// The program's own ranges as tracks: those of a thread below it, a track for each depth; those
// that were started, which may end on any thread, below their process.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "analyze/export/tracks.hpp"

namespace cudabpf::analyze {

void Tracks::range(const Line& line) {
  if (!line.has(Field::duration) || !line.label) return;
  Process& process = this->process(line.pid);
  bool pushed = names_.text(line.op) == "push";
  const Track* below = pushed ? &thread(process, line.tid).track : &process.track;
  std::size_t depth = line.place ? line.place->depth : 0;
  auto& lanes = process.ranges[{pushed ? line.tid : 0, depth}];
  auto name_of = [&](std::size_t others) {
    std::string name = pushed ? "ranges" : "started ranges";
    if (depth) name += fmt::format(", depth {}", depth + 1);
    return others ? fmt::format("{}, overlapping {}", name, others) : name;
  };
  Lane* lane = free_lane(lanes, line, Track::Kind::ranges, process, *below, name_of);
  if (!lane) return;
  out_.span(lane->track, {line.ts, line.end()}, names_.text(line.label),
            {{"domain", std::string(names_.text(line.domain))},
             {"category", std::string(names_.text(line.category))}});
}

}  // namespace cudabpf::analyze
