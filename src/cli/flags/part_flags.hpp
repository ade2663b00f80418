// --from and --to, --phase, --iteration, --range: which part of a trace an answer is about.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/iterations/named_parts.hpp"
#include "util/text/moments.hpp"

namespace CLI {
class App;
}

namespace cudabpf::cli {

struct PartFlags {
  std::string from, to;
  std::vector<std::string> phases;
  std::string iteration;
  std::string range;            // a pattern, beside any of these
  analyze::ThreadFilter whose;  // phases and iterations: of the thread that launches most of these

  bool any() const { return !from.empty() || !to.empty() || !range.empty() || is_of_execution(); }
  // Such a part is known only once the whole trace was read.
  bool is_of_execution() const { return !phases.empty() || !iteration.empty(); }
};
void add_part_flags(CLI::App& sub, PartFlags& flags);
// --pid and --tid.
void add_whose_flags(CLI::App& sub, PartFlags& flags);
// `found`: whether any of these threads made a call; an error if one is wanted and none did.
Result<> check_whose(const analyze::ThreadFilter& whose, bool found);

// Reads all of the trace if the part is a phase or an iteration. `moments` are in the zone of times
// of day that name none.
Result<analyze::NamedPart> find_part(const PartFlags& flags, const Moments& moments,
                                     analyze::TraceReader& reader);

}  // namespace cudabpf::cli
