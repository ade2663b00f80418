// Communicators as tracks below their process: the calls of its collectives, from entry to return.
#include <fmt/format.h>

#include "analyze/export/tracks.hpp"
#include "util/console/terminal.hpp"
#include "util/text/json_text.hpp"

namespace cudabpf::analyze {

// Comes again when more is known of it, such as its rank.
void Tracks::communicator(const Line& line) {
  if (communicators_.size() >= MAX_TRACKS && !communicators_.contains(line.communicator)) return;
  auto told = parsed(line.text);
  std::string& name = communicators_[line.communicator].name;
  name = fmt::format("communicator {}", line.communicator);
  auto rank = number_in<std::uint32_t>(told, "rank"),
       ranks = number_in<std::uint32_t>(told, "ranks");
  if (rank) name += fmt::format(", rank {}", *rank);
  if (ranks) name += fmt::format("{} of {}", rank ? "" : ", one", *ranks);
}

void Tracks::collective(Process& process, const Line& line) {
  if (!line.has(Field::duration)) return;
  if (communicators_.size() >= MAX_TRACKS && !communicators_.contains(line.communicator)) return;
  auto& [name, lanes] = communicators_[line.communicator];
  // Threads may call at once, though NCCL does not allow it.
  if (name.empty()) name = fmt::format("communicator {}", line.communicator);
  Lane* lane = free_lane(lanes, line, Track::Kind::communicator, process, process.track,
                         [&name = name](std::size_t others) {
                           return others ? fmt::format("{}, overlapping {}", name, others) : name;
                         });
  if (!lane) return;
  auto text = [](bool known, std::uint64_t number) {
    return known ? fmt::format("{}", number) : std::string();
  };
  std::string what(names_.text(line.op));
  if (line.size) what += " " + human_bytes(line.size);
  out_.span(lane->track, {line.ts, line.end()}, what,
            {{"seq", text(line.has(Field::seq), line.seq)},
             {"call", text(true, line.id)},
             {"call_group", text(line.has(Field::call_group), line.call_group)},
             {"datatype", std::string(names_.text(line.datatype))},
             {"reduction", std::string(names_.text(line.reduction))},
             {"captured", line.captured ? "into a graph" : ""}});
}

}  // namespace cudabpf::analyze
