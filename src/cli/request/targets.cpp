#include "cli/request/targets.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "util/exit_codes.hpp"
#include "util/system/container.hpp"

namespace cudabpf::cli {

namespace {

void add_pid(Targets& targets, pid_t pid) {
  auto number = static_cast<std::uint32_t>(pid);
  if (std::find(targets.pids.begin(), targets.pids.end(), number) == targets.pids.end())
    targets.pids.push_back(number);
}

Result<> add_by_pid(const std::vector<std::uint32_t>& pids, const Procfs& procfs,
                    Targets& targets) {
  for (std::uint32_t pid : pids) {
    if (!procfs.exists(static_cast<pid_t>(pid)))
      return Error{fmt::format("--pid {}: there is no such process", pid),
                   "`pgrep -a python` or `nvidia-smi` lists candidates", exit_code::NO_TARGET};
    pid_t process = procfs.process_of(static_cast<pid_t>(pid));
    if (process && process != static_cast<pid_t>(pid))
      return Error{fmt::format("--pid {}: it is a thread of process {}", pid, process),
                   fmt::format("threads are traced with their process: --pid {}", process),
                   exit_code::NO_TARGET};
    add_pid(targets, static_cast<pid_t>(pid));
  }
  return ok();
}

Result<> add_by_name(const std::vector<std::string>& names, const Procfs& procfs,
                     Targets& targets) {
  // Leaves out this process and the sudo that started it: their command lines hold the name, too.
  std::vector<pid_t> ours = procfs.ancestors(getpid());
  ours.push_back(getpid());
  for (const std::string& name : names) {
    auto found = procfs.find_by_name(name);
    std::erase_if(
        found, [&](pid_t pid) { return std::find(ours.begin(), ours.end(), pid) != ours.end(); });
    if (found.empty())
      return Error{fmt::format("--name {}: no process of that name runs", name),
                   "the name is that of the program (python3.11), not of its script",
                   exit_code::NO_TARGET};
    for (pid_t pid : found) add_pid(targets, pid);
  }
  return ok();
}

// Where the unified hierarchy is mounted: /sys/fs/cgroup, or beside v1 in a separate folder.
std::string unified_mount(const Procfs& procfs) {
  std::ifstream mounts(procfs.own_path("mounts"));
  for (std::string device, folder, type, rest; mounts >> device >> folder >> type;) {
    std::getline(mounts, rest);
    if (type == "cgroup2") return folder;
  }
  return {};
}

std::optional<CgroupFolder> unified_folder(const Procfs& procfs, const std::string& path) {
  struct stat status {};
  if (path.size() < 2 || stat((unified_mount(procfs) + path).c_str(), &status) != 0)
    return std::nullopt;
  return CgroupFolder{status.st_ino,
                      static_cast<std::uint32_t>(std::count(path.begin(), path.end(), '/')), path};
}

// The cgroup's path, which a user may give as /proc/PID/cgroup shows it, or as a folder.
std::string without_mount(const Procfs& procfs, std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::string mount = unified_mount(procfs);
  return !mount.empty() && is_inside_cgroup(path, mount) ? path.substr(mount.size()) : path;
}

Result<> add_by_cgroup(const std::string& given, const Procfs& procfs, Targets& targets) {
  std::string wanted = without_mount(procfs, given);
  targets.cgroup = unified_folder(procfs, wanted);
  for (pid_t pid : procfs.pids()) {
    std::string text = procfs.process(pid).cgroup;
    if (is_inside_cgroup(unified_cgroup_path(text), wanted) ||
        is_inside_cgroup(cgroup_path(text), wanted))
      add_pid(targets, pid);
  }
  if (targets.cgroup || !targets.pids.empty()) return ok();
  return Error{fmt::format("--container {}: there is no such cgroup", given),
               "`cat /proc/PID/cgroup` shows a process's cgroup", exit_code::NO_TARGET};
}

Result<> add_by_container(const std::string& id, const Procfs& procfs, Targets& targets) {
  std::string found;
  for (pid_t pid : procfs.pids()) {
    std::string text = procfs.process(pid).cgroup;
    ContainerIdentity container = identify_container(text);
    if (!container.in_container() || !container.id.starts_with(id)) continue;
    if (found.empty()) found = container.id;
    if (found != container.id)
      return Error{fmt::format("--container {}: more than one begins so, {} and {}", id, found,
                               container.id),
                   "give more of the id", exit_code::NO_TARGET};
    add_pid(targets, pid);
    std::string path(unified_cgroup_path(text));
    std::size_t at = path.find(container.id);
    if (!targets.cgroup && at != std::string::npos)  // a process may sit deeper in its container
      targets.cgroup = unified_folder(procfs, path.substr(0, path.find('/', at)));
  }
  if (!targets.pids.empty()) return ok();
  return Error{fmt::format("--container {}: no process runs in such a container", id),
               "give the beginning of the id that `docker ps --no-trunc` or `crictl ps` shows, or "
               "the path of a cgroup",
               exit_code::NO_TARGET};
}

}  // namespace

Result<Targets> find_targets(const TargetFlags& flags, const Procfs& procfs) {
  Targets targets;
  TRY(add_by_pid(flags.pids, procfs, targets));
  TRY(add_by_name(flags.names, procfs, targets));
  if (!flags.container.empty()) {
    bool by_path = flags.container.starts_with('/');
    TRY(by_path ? add_by_cgroup(flags.container, procfs, targets)
                : add_by_container(flags.container, procfs, targets));
  }
  return targets;
}

}  // namespace cudabpf::cli
