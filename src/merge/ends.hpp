// The first and the last line of a merged trace, from those of the traces that it is made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "merge/one_time.hpp"
#include "merge/survey.hpp"
#include "trace/merged.hpp"
#include "util/result.hpp"

namespace cudabpf::merge {

// What the header says of each trace, in their order. Refuses more hosts than can be kept apart.
Result<std::vector<MergedTrace>> described(const std::vector<Surveyed>& traces,
                                           const std::vector<Placed>& placed);

std::string merged_header(const std::vector<Surveyed>& traces,
                          const std::vector<MergedTrace>& merged);
// `lines`: with this one.
std::string merged_end(const std::vector<Surveyed>& traces, const std::vector<MergedTrace>& merged,
                       std::uint64_t lines);

}  // namespace cudabpf::merge
