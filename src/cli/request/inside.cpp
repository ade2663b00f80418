#include "cli/request/inside.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>

#include "cli/request/invoker.hpp"
#include "cudabpf/inside.h"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

constexpr const char* NAME = "libcudabpf-inside.so";

void set(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment,
                [&](const std::string& variable) { return variable.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

}  // namespace

std::vector<std::string> inside_library_paths(const std::string& program) {
  std::string folder = program.substr(0, program.rfind('/'));
  return {fmt::format("{}/{}", folder, NAME),
          fmt::format("{}/../libexec/cudabpf/{}", folder, NAME)};
}

Result<std::string> inside_library() {
#ifndef __x86_64__
  return Error{"recording from inside a process does not work on this machine's architecture yet",
               "run it as root, to trace by eBPF", exit_code::USAGE};
#else
  char program[PATH_MAX];
  ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
  if (size < 0) return errno_error("/proc/self/exe");
  program[size] = '\0';
  auto paths = inside_library_paths(program);
  for (const std::string& path : paths)
    if (access(path.c_str(), R_OK) == 0) return path;
  return Error{fmt::format("{} is missing: it is neither {}", NAME, fmt::join(paths, " nor ")),
               "install it together with cudabpf"};
#endif
}

std::vector<std::string> environment_inside(std::vector<std::string> environment,
                                            const std::string& library, const std::string& door) {
  std::string before = value_in(environment, CI_INJECTION);
  // A cudabpf that runs below another has its own library there.
  if (!before.empty() && before != library) set(environment, CI_NEXT, before);
  set(environment, CI_INJECTION, library);
  set(environment, CI_DOOR, door);
  return environment;
}

}  // namespace cudabpf::cli
