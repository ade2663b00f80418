// Several files may be one trace, which was rotated, or traces of their own.
#pragma once

#include <string>
#include <vector>

#include "util/result.hpp"

namespace cudabpf::cli {

using Paths = std::vector<std::string>;  // the files of one trace

// Files that follow one another as the parts of a rotated trace are one trace. Among runs of one
// program none may be there twice. To be merged, all files of a trace belong together, wherever
// they are in the list; whether they are in order is seen when they are read.
enum class TracesAre { runs_of_one, any, to_be_merged };
Result<std::vector<Paths>> traces_of(const Paths& files, TracesAre are);

}  // namespace cudabpf::cli
