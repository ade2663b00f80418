// Which file a command's name means.
#pragma once

#include <string>
#include <vector>

namespace cudabpf::cli {

// Where a shell would find `program`; as it is if it names a path. Where nothing on PATH can be
// executed, the first that is there: the kernel says why it cannot. Empty: there is none.
std::string find_program(const std::string& program, const std::vector<std::string>& environment);

}  // namespace cudabpf::cli
