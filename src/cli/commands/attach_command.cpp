// cudabpf attach: traces processes that are already running.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "cli/captures.hpp"
#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/request/targets.hpp"
#include "cli/session.hpp"
#include "collect/bpf/bpf_source.hpp"
#include "util/console/log.hpp"
#include "util/system/pidfd.hpp"

namespace cudabpf::cli {

namespace {

// Selects these processes and those already descended from them that still run, but not this one
// nor the sudo that started it. A process is selected before its children are looked for, and
// followed from then on, so no child slips through.
void select_with_descendants(Capture& capture, const std::vector<std::uint32_t>& pids,
                             bool descendants) {
  Procfs procfs;
  std::vector<pid_t> ours = procfs.ancestors(getpid());
  ours.push_back(getpid());
  std::set<std::uint32_t> found;
  for (std::vector<std::uint32_t> next = pids; !next.empty();) {
    for (std::uint32_t pid : next) {
      found.insert(pid);
      Fd pidfd = open_pidfd(static_cast<pid_t>(pid));
      if (has_ended(static_cast<pid_t>(pid), pidfd)) continue;
      capture.announce(pid);
      capture.source().select_process(pid);
      // If it ended in between, nobody saw that of a selected process, and its pid may be used
      // again.
      if (has_ended(static_cast<pid_t>(pid), pidfd)) capture.source().forget_process(pid);
    }
    next.clear();
    if (!descendants) return;
    for (auto [child, parent] : procfs.parents()) {
      auto pid = static_cast<std::uint32_t>(child);
      if (found.contains(static_cast<std::uint32_t>(parent)) && !found.contains(pid) &&
          std::find(ours.begin(), ours.end(), child) == ours.end())
        next.push_back(pid);
    }
  }
}

}  // namespace

Result<int> capture_running(const AttachFlags& flags) {
  auto targets = TRY(find_targets(flags.targets, Procfs()));
  for (std::uint32_t pid : targets.pids)
    if (pid_t tracer = Procfs().tracer(static_cast<pid_t>(pid)))
      log::warning(
          "process {} is debugged by process {}: a breakpoint set or deleted at a traced function "
          "may kill it, and is not hit while it is traced",
          pid, tracer);
  auto options = TRY(flags.capture.source_options());
  if (!options.follow_children) {
    targets.cgroup.reset();  // who enters it later was not there to be named
    // Each function asks every one of its probes' processes whether it is meant.
    constexpr std::size_t FEW = 8;
    if (targets.pids.size() <= FEW) options.only_in = targets.pids;
  }

  auto session = TRY(CaptureSession::open(flags.capture, options, BpfSource::open));
  Session header;
  header.mode = "attach";
  header.pids = targets.pids;
  TRY(session->begin(std::move(header), [&](Capture& capture) {
    select_with_descendants(capture, targets.pids, options.follow_children);
    if (targets.cgroup) capture.source().select_cgroup(*targets.cgroup);
  }));
  CaptureSession::Until until{.command = nullptr, .pids = targets.pids};
  if (targets.cgroup) until.pids.clear();  // whoever enters the container later is traced too
  return session->run_until(until);
}

namespace {

Result<int> attach(const AttachFlags& flags) {
  if (flags.targets.empty())
    return Error{"attach: one of --pid, --name or --container is required",
                 "see `cudabpf attach --help`", exit_code::USAGE};
  return capture_running(flags);
}

}  // namespace

void add_attach(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<AttachFlags>(app, action, "attach",
                                               "Trace processes that are already running", attach);
  sub.add_option("-p,--pid", flags.targets.pids, "Trace these processes")
      ->type_name("PID")
      ->delimiter(',');
  sub.add_option("-n,--name", flags.targets.names, "Trace processes that run this program")
      ->type_name("PROGRAM");
  sub.add_option("--container", flags.targets.container,
                 "Trace the processes of a container, given by the "
                 "beginning of its id or by the path of a cgroup")
      ->type_name("ID|CGROUP");
  flags.capture.add_to(sub, false);
  add_footer(
      sub,
      {"sudo cudabpf attach --pid 4242", "sudo cudabpf attach --name python3.11 --duration 30s",
       "sudo cudabpf attach --container 3f2a09   by the beginning of its id"},
      capture_statuses());
}

}  // namespace cudabpf::cli
