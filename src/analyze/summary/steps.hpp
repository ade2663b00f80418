// The iterations and phases of several processes side by side, so that the ranks of a job can be
// compared: of each, those of its thread that launches most.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/summary/finding.hpp"
#include "analyze/summary/judged.hpp"

namespace cudabpf::analyze {

struct Steps {
  std::uint64_t process = 0;  // its number
  std::uint32_t pid = 0, tid = 0;
  Name comm, host;
  std::optional<std::uint32_t> rank;
  Iterations iterations;  // without `each`
  Phases phases;
  Stretch stretch;
  MeasuredExecution measured;
  std::optional<Finding> bound;  // what bounds it

  // "rank 1, 698 python3"
  std::string title(const Names& names) const;
};

// The steps of the thread that `judged` looks at.
Steps steps_of(const Judged& judged);
// By rank where that is known, else by pid.
void sort_steps(std::vector<Steps>& steps);

Json steps_json(const std::vector<Steps>& steps, const Names& names);
Json steps_columns();  // for the page of `report`
void add_steps(Page& page, const std::vector<Steps>& steps, const Names& names);
// The time of each phase in each process. `all`: those, too, that took no time to speak of.
void add_phases_beside(Page& page, const std::vector<Steps>& steps, bool all);

}  // namespace cudabpf::analyze
