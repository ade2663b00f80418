// Who called: as whom `run` starts its command, and whose trace files are.
#pragma once

#include <string>
#include <vector>

#include "util/result.hpp"
#include "util/system/privileges.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf::cli {

struct Caller {
  std::optional<User> user;  // who called sudo; nothing: whoever this process is
  // What that user's command should have. What sudo took away (PATH, VIRTUAL_ENV, LD_LIBRARY_PATH,
  // CUDA_*…) is read from the sudo process itself, and variables given on sudo's command line are
  // added. Without sudo: this process's own.
  std::vector<std::string> environment;
};
// Found out when it is first asked for, which is before rights are given up.
const Caller& caller();

// This process's, as it was given to it.
std::vector<std::string> own_environment();

// By name or number, for --user.
Result<User> find_user(const std::string& name);

// The value of NAME in such an environment; empty if it is not there.
std::string value_in(const std::vector<std::string>& environment, const std::string& name);

}  // namespace cudabpf::cli
