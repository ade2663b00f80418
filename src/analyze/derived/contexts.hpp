// Fills in which context is current on a call's thread.
#pragma once

#include <utility>
#include <vector>

#include "state/current_contexts.hpp"
#include "trace/read/line.hpp"

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
