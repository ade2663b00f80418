// What a merge is made of, for people and programs: hosts, how their traces were put on one time,
// and how far that may be wrong.
#pragma once

#include <vector>

#include "analyze/analysis.hpp"
#include "trace/merged.hpp"
#include "util/page/page.hpp"

namespace cudabpf::analyze {

// A table with a row for each trace, and what follows for the order of events.
void add_merged(Page& page, const std::vector<MergedTrace>& merged);
Json merged_json(const std::vector<MergedTrace>& merged);

// "node1 and node2", "node1, node2 and 6 more".
std::string hosts_text(const std::vector<MergedTrace>& merged);
// What may be said of the order of events, in a sentence or two: of different hosts, it may not be
// known. Printed wherever a merge is shown.
std::string order_text(const std::vector<MergedTrace>& merged);

}  // namespace cudabpf::analyze
