// What must be known of a trace before the first line of a merge can be written. All of it is read
// for that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/trace_reader.hpp"
#include "cudabpf/sink.hpp"
#include "merge/lives.hpp"
#include "merge/machine_lines.hpp"
#include "merge/one_time.hpp"

namespace cudabpf::merge {

struct Surveyed {
  std::vector<std::string> files;  // of one trace, in order
  analyze::TraceFacts facts;
  EventCounts counts;       // of the lines that are there
  std::uint64_t unfit = 0;  // lines with numbers that no real trace has
  std::uint64_t repeated = 0;
  std::vector<Life> lives;
  bool has_collectives = false;  // whose times on GPUs may be there

  TraceTimes times() const;
};

// `before`: the traces before it, whose lines about the machine it may repeat.
Result<Surveyed> survey(std::vector<std::string> files, const MachineLines& before,
                        analyze::TraceReader::Progress progress);

}  // namespace cudabpf::merge
