// Where the dynamic linker looks for libraries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cudabpf {

// Those that the value of an LD_LIBRARY_PATH names.
std::vector<std::string> folders_of(std::string_view library_path);

// Those of `library_path` (the value of LD_LIBRARY_PATH), then those that the linker's
// configuration names and includes, then those that need none.
std::vector<std::string> linker_folders(std::string_view library_path,
                                        const std::string& config = "/etc/ld.so.conf");

}  // namespace cudabpf
