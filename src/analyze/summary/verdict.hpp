// What a trace shows that a person could act on, the most important first: what is missing from it,
// what failed, what bounds the program, what it did before its work began.
#pragma once

#include <vector>

#include "analyze/summary/finding.hpp"
#include "analyze/summary/judged.hpp"

namespace cudabpf::analyze {

std::vector<Finding> find_verdict(const Seen& seen);

Json verdict_json(const std::vector<Finding>& findings);
// The first few.
void add_verdict(Page& page, const std::vector<Finding>& findings);

}  // namespace cudabpf::analyze
