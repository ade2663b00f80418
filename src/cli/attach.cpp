// cudabpf attach: traces processes that run already.
#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "cli/capture_flags.hpp"
#include "cli/commands.hpp"
#include "cli/session.hpp"
#include "collect/exit_codes.hpp"
#include "util/container.hpp"
#include "util/log.hpp"

namespace cudabpf::cli {

namespace {

struct AttachFlags {
  CaptureFlags capture;
  std::vector<std::uint32_t> pids;
  std::vector<std::string> names;
  std::string container;
};

struct Targets {
  std::vector<std::uint32_t> pids;
  std::string cgroup;  // the v2 folder that stands for a container; empty: none
};

void add_pid(Targets& targets, pid_t pid) {
  auto number = static_cast<std::uint32_t>(pid);
  if (std::find(targets.pids.begin(), targets.pids.end(), number) == targets.pids.end())
    targets.pids.push_back(number);
}

Result<> find_pids(const AttachFlags& flags, const Procfs& procfs, Targets& targets) {
  for (std::uint32_t pid : flags.pids) {
    if (!procfs.exists(static_cast<pid_t>(pid)))
      return Error{fmt::format("--pid {}: there is no such process", pid),
                   "`pgrep -a python` or `nvidia-smi` lists candidates", exit_code::NO_TARGET};
    add_pid(targets, static_cast<pid_t>(pid));
  }
  for (const std::string& name : flags.names) {
    auto found = procfs.find_by_name(name);
    std::erase(found, getpid());
    if (found.empty())
      return Error{fmt::format("--name {}: no process of that name runs", name),
                   "the name is that of the program (python3.11), not of its script",
                   exit_code::NO_TARGET};
    for (pid_t pid : found) add_pid(targets, pid);
  }
  return ok();
}

// A container by id (or its beginning), by name, or by the path of its cgroup.
Result<> find_container(const std::string& wanted, const Procfs& procfs, Targets& targets) {
  std::string cgroup;
  if (wanted.starts_with('/')) {
    cgroup = wanted.starts_with("/sys/fs/cgroup") ? wanted : "/sys/fs/cgroup" + wanted;
    std::error_code ignored;
    if (!std::filesystem::is_directory(cgroup, ignored))
      return Error{fmt::format("--container {}: there is no such cgroup", wanted),
                   "`cat /proc/PID/cgroup` tells a process's", exit_code::NO_TARGET};
    targets.cgroup = cgroup;
  }
  for (pid_t pid : procfs.pids()) {
    ProcessIdentity process = procfs.process(pid);
    ContainerIdentity container = identify_container(process.cgroup);
    std::string path = "/sys/fs/cgroup" + std::string(cgroup_path(process.cgroup));
    bool inside = cgroup.empty() ? container.in_container() && container.id.starts_with(wanted)
                                 : path == cgroup || path.starts_with(cgroup + "/");
    if (!inside) continue;
    add_pid(targets, pid);
    if (targets.cgroup.empty() && std::filesystem::is_directory(path)) targets.cgroup = path;
  }
  if (cgroup.empty() && targets.pids.empty())
    return Error{fmt::format("--container {}: no process runs in such a container", wanted),
                 "give the beginning of the id that `docker ps` or `crictl ps` shows, or the path "
                 "of a cgroup",
                 exit_code::NO_TARGET};
  return ok();
}

Result<int> attach(const AttachFlags& flags) {
  Procfs procfs;
  Targets targets;
  if (auto found = find_pids(flags, procfs, targets); !found) return found.error();
  if (!flags.container.empty())
    if (auto found = find_container(flags.container, procfs, targets); !found) return found.error();
  auto options = flags.capture.capture_options();
  if (!options) return options.error();
  options->pids = targets.pids;

  auto session = CaptureSession::open(flags.capture, *options);
  if (!session) return session.error();
  (*session)->begin("attach", {});
  Capture& capture = (*session)->capture();
  for (std::uint32_t pid : targets.pids) {
    capture.announce(pid);
    capture.select_process(pid);
  }
  CaptureSession::Until until{.command = nullptr, .pids = targets.pids};
  if (!targets.cgroup.empty()) {
    Fd folder(open(targets.cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto selected = capture.select_cgroup(folder.get());
    if (selected)
      until.pids.clear();  // whoever enters the container later is traced too
    else
      log::warning(
          "only the processes that run in the container now are traced, and their "
          "children: {}",
          selected.error().message);
  }
  return (*session)->run_until(until);
}

}  // namespace

void add_attach(CLI::App& app, Action& action) {
  auto flags = std::make_shared<AttachFlags>();
  CLI::App* sub = app.add_subcommand("attach", "Trace processes that run already");
  sub->add_option("-p,--pid", flags->pids, "These processes")->type_name("PID…")->delimiter(',');
  sub->add_option("-n,--name", flags->names, "Processes of this program")->type_name("NAME…");
  sub->add_option("--container", flags->container,
                  "The processes of a container: its id or name, or the path of a cgroup")
      ->type_name("ID|CGROUP");
  flags->capture.add_to(*sub, true);
  sub->footer(footer());
  sub->callback([flags, &action] {
    if (flags->pids.empty() && flags->names.empty() && flags->container.empty())
      throw CLI::RequiredError("attach: one of --pid, --name or --container");
    action = [flags] { return attach(*flags); };
  });
}

}  // namespace cudabpf::cli
