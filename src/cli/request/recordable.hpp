// Whether a program can be recorded from inside, as far as its file says.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace cudabpf::cli {

// Why the library cannot come into this program when `user` runs it, or may do nothing there;
// empty: the file says nothing against it. A script is judged by its interpreter, which is looked
// for as `environment` says.
std::string why_not_recordable(std::string program, const std::vector<std::string>& environment,
                               uid_t user);

}  // namespace cudabpf::cli
