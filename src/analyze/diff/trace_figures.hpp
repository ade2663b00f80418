// What is kept of each trace of a side: its figures, and what makes them uncertain. So the traces
// themselves need not all be in memory at once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/diff/measure.hpp"
#include "analyze/diff/settings.hpp"

namespace cudabpf::analyze {

struct TraceFigures {
  struct Figure {
    MeasurePart asked;
    std::uint64_t value = 0;
    Median median;  // if it is one of many values within the trace
  };
  // Something is missing from the trace, and figures that need it may be wrong.
  struct Doubt {
    Needs about;
    std::string why;  // "is cut off"
  };

  TraceFacts facts;
  Settings settings;
  std::vector<Doubt> doubts;
  bool issued_alone = false;    // its iterations' times cover only enqueuing
  std::vector<Figure> figures;  // those that it has, in the order of the table

  const Figure* find(const MeasurePart& asked) const;  // null: the trace has no such thing
  const Doubt* doubt(Needs about) const;               // the first; null: there is none
};

// All figures that have rows, and those of `asked`.
TraceFigures figures_of(const Measures& trace, const std::vector<MeasurePart>& asked);

}  // namespace cudabpf::analyze
