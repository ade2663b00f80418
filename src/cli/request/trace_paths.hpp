// The paths of a trace's files, as a user gives them.
#pragma once

#include <string>
#include <vector>

#include "util/result.hpp"

namespace cudabpf::cli {

// Without ".jsonl" and ".zst".
std::string without_ending(std::string path);

// What a trace is called, without what its kind adds: "traces/t.0001.jsonl.zst" -> "t".
std::string name_of_trace(const std::string& path);

// Whether a file of that name can be written without a trace being lost by that.
Result<> is_no_trace(const std::string& path, const std::vector<std::string>& traces);

}  // namespace cudabpf::cli
