// When a finding is worth a person's time: each rule looks at the whole trace and finds something
// or nothing. verdict.cpp has them in the order of their importance.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analyze/summary/finding.hpp"
#include "analyze/summary/judged.hpp"

namespace cudabpf::analyze {

using Found = std::optional<Finding>;
// The finding by which a summary chooses which of a job's ranks it shows.
inline constexpr std::string_view WAITING_FOR_RANK = "waiting_for_rank";

// What is missing or went wrong (fault_rules.cpp).
Found incomplete(const Judged& judged);
Found errors(const Judged& judged);
Found out_of_memory(const Judged& judged);
Found no_gpu_times(const Judged& judged);
Found no_work(const Judged& judged);
Found not_judged(const Judged& judged);

// What bounds the work, if there is enough of it (bound_rules.cpp).
std::vector<Finding> bounds(const Judged& judged);
// The same by GPUs' own times, if they can be judged by (measured_rules.cpp).
std::vector<Finding> measured_bounds(const Judged& judged);
Finding measured_mixed(const Judged& judged);
void add_measured_figures(Finding& finding, const Judged& judged);

// What happens over the whole run (course_rules.cpp).
Found loading(const Judged& judged);
Found memory_growth(const Judged& judged);

}  // namespace cudabpf::analyze
