// The user who called sudo: whom trace files belong to, and as whom `run` starts its command.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "sink/trace_file.hpp"
#include "util/procfs.hpp"
#include "util/result.hpp"

namespace cudabpf::cli {

struct User {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;
};

// From SUDO_UID and SUDO_GID; nothing if this was not called by sudo.
std::optional<User> invoking_user();
std::optional<Owner> invoking_user_as_owner();

// By name or number, for --user.
Result<User> find_user(const std::string& name);

// The environment that the invoking user's command should have: what sudo took away (PATH,
// VIRTUAL_ENV, LD_LIBRARY_PATH, CUDA_*…) is read from the sudo process itself, and variables given
// on sudo's command line are added. Without sudo: this process's own.
std::vector<std::string> invoking_environment(const Procfs& procfs);

// The value of NAME in such an environment; empty if it is not there.
std::string value_in(const std::vector<std::string>& environment, const std::string& name);

}  // namespace cudabpf::cli
