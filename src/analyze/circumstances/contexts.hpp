// Tells lines which context is current on their thread.
#pragma once

#include <utility>
#include <vector>

#include "analyze/trace/line.hpp"
#include "follow/current_contexts.hpp"

namespace cudabpf::analyze {

class Contexts {
 public:
  explicit Contexts(Names& names);

  // Fills in which context is current on the call's thread, and which one the call destroys.
  void follow(Line& line);

 private:
  CurrentContexts current_;
  std::vector<std::pair<Name, const Function*>> functions_;  // those that change contexts
};

}  // namespace cudabpf::analyze
