// Parts of a trace by the names and numbers that `summary` gives its phases and iterations.
#pragma once

#include <string>
#include <vector>

#include "analyze/iterations/execution.hpp"
#include "util/result.hpp"

namespace cudabpf::analyze {

struct NamedPart {
  Part part;
  std::string name;  // "inference", "iterations 10 to 20"
};

// Each a phase's name, or the beginning of one that no other phase has; blanks, hyphens and
// capitals do not matter. Several have to follow one another.
Result<NamedPart> part_of_phases(const Execution& execution,
                                 const std::vector<std::string>& wanted);

// "3", "10-20", "last", "30-last"; the first is 1.
Result<NamedPart> part_of_iterations(const Execution& execution, const std::string& wanted);

}  // namespace cudabpf::analyze
