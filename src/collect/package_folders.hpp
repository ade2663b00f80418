// Where Python's packages have libraries: a program finds them by its packages' own paths, not by
// the linker's.
#pragma once

#include <string>
#include <vector>

#include "util/system/procfs.hpp"

namespace cudabpf {

// Below the packages of every environment that a process's Python may use, as the process names
// them; they need not exist. None: it runs no Python.
std::vector<std::string> package_folders(const ProcessIdentity& process,
                                         const std::vector<std::string>& environment);

}  // namespace cudabpf
