// Which file a command's name means.
#pragma once

#include <string>
#include <vector>

namespace cudabpf::cli {

// Where a shell would find `program`; as it is if it names a path. Where nothing on PATH can be
// executed, the first that is there: the kernel says why it cannot. Empty: there is none.
std::string find_program(const std::string& program, const std::vector<std::string>& environment);

// What a command comes to that may begin with env(1): "env -u A LD_LIBRARY_PATH=/opt/lib ./app".
struct Launched {
  std::size_t program = 0;  // its place among the arguments
  std::vector<std::string> environment;
};
Launched behind_env(const std::vector<std::string>& arguments,
                    std::vector<std::string> environment);

}  // namespace cudabpf::cli
