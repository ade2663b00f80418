#include "cli/request/inside.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "cli/request/invoker.hpp"
#include "cudabpf/inside.h"
#include "util/exit_codes.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::cli {

namespace {

constexpr const char* NAME = "libcudabpf-inside.so";

void set(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment,
                [&](const std::string& variable) { return variable.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

// Does what the linker and the library itself will do: maps code, and makes it writable.
Result<> check_loadable(const std::string& path, const Fd& file) {
  auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* code = mmap(nullptr, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
  if (code == MAP_FAILED)
    return errno_error("the dynamic linker cannot load " + path,
                       "copy cudabpf and the library to a file system that is not mounted noexec");
  bool changeable = mprotect(code, page, PROT_READ | PROT_WRITE | PROT_EXEC) == 0;
  auto refused = errno_error("code cannot be changed in memory here",
                             "a security policy forbids it, such as SELinux's execmod");
  munmap(code, page);
  if (!changeable) return refused;
  return ok();
}

}  // namespace

std::vector<std::string> inside_library_paths(const std::string& program) {
  std::string folder = program.substr(0, program.rfind('/'));
  return {fmt::format("{}/{}", folder, NAME),
          fmt::format("{}/../libexec/cudabpf/{}", folder, NAME)};
}

std::string how_to_get_inside_library(const std::string& program) {
  std::string folder = program.substr(0, program.rfind('/'));
  if (access((folder + "/CMakeCache.txt").c_str(), F_OK) == 0)  // a build, of less than everything
    return fmt::format("build it: cmake --build {} --target installed", folder);
  return fmt::format("install it together with cudabpf, or copy it into {}",
                     folder.empty() ? "/" : folder);
}

Result<std::string> inside_library() {
#ifndef __x86_64__
  return Error{"recording inside a process does not work on this machine's architecture yet",
               "run cudabpf as root to trace with eBPF", exit_code::USAGE};
#else
  char program[PATH_MAX];
  ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
  if (size < 0)
    return errno_error("cudabpf does not find where it is itself: /proc/self/exe",
                       "mount /proc here");
  program[size] = '\0';
  auto paths = inside_library_paths(program);
  for (const std::string& path : paths) {
    Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) continue;
    TRY(check_loadable(path, file));
    return path;
  }
  return Error{fmt::format("{} is missing: it is not at {}", NAME, fmt::join(paths, " or ")),
               how_to_get_inside_library(program)};
#endif
}

std::vector<std::string> environment_inside(std::vector<std::string> environment,
                                            const std::string& library, const std::string& listener,
                                            LoadedBy by) {
  auto take = [&](const char* place, const char* next) {
    std::string before = value_in(environment, place);
    // A cudabpf that runs below another has its own library there.
    if (!before.empty() && before != library) set(environment, next, before);
    set(environment, place, library);
  };
  if (by.libcuda) take(CI_INJECTION, CI_NEXT);
  if (by.nvtx) take(CI_NVTX_INJECTION, CI_NVTX_NEXT);
  set(environment, CI_LISTENER, listener);
  return environment;
}

}  // namespace cudabpf::cli
