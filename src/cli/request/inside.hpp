// What a command needs so that it is recorded from inside: the library, and variables.
#pragma once

#include <string>
#include <vector>

#include "util/result.hpp"

namespace cudabpf::cli {

// Where the library is: beside this program, or where it is installed with it.
Result<std::string> inside_library();
// What to do where the program at this path has none.
std::string how_to_get_inside_library(const std::string& program);
// In the order in which it is looked for, for a program at this path.
std::vector<std::string> inside_library_paths(const std::string& program);

// Who is to load the library into a process.
struct LoadedBy {
  bool libcuda = true, nvtx = true;
};
// The environment plus the variables for our library and for those that it replaces.
std::vector<std::string> environment_inside(std::vector<std::string> environment,
                                            const std::string& library, const std::string& listener,
                                            LoadedBy by);

}  // namespace cudabpf::cli
