// Who called cudabpf: `run` starts its command as this user, who also owns the trace files.
#pragma once

#include <string>
#include <vector>

#include "util/result.hpp"
#include "util/system/privileges.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf::cli {

struct Caller {
  std::optional<User> user;  // who called sudo; nothing: this process's own user
  // The environment for that user's command. What sudo removed (PATH, VIRTUAL_ENV, LD_LIBRARY_PATH,
  // CUDA_*…) is read from the sudo process itself, and variables given on sudo's command line are
  // added. Without sudo: this process's own environment.
  std::vector<std::string> environment;
};
// Determined when first asked for, which is before privileges are dropped.
const Caller& caller();
// The caller behind process `pid`, which runs as root with the environment `own`. `procfs` may be
// any /proc.
Caller caller_of(const Procfs& procfs, pid_t pid, const std::vector<std::string>& own);

// This process's environment as it was given.
std::vector<std::string> own_environment();

// Finds a user by name or number, for --user.
Result<User> find_user(const std::string& name);

}  // namespace cudabpf::cli
