// cudabpf attach: traces processes that run already.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/capture_flags.hpp"
#include "cli/commands.hpp"
#include "cli/session.hpp"
#include "cli/targets.hpp"

namespace cudabpf::cli {

namespace {

struct AttachFlags {
  CaptureFlags capture;
  TargetFlags targets;
};

Result<int> attach(const AttachFlags& flags) {
  auto targets = find_targets(flags.targets, Procfs());
  if (!targets) return targets.error();
  auto options = flags.capture.capture_options();
  if (!options) return options.error();
  options->pids = targets->pids;

  auto session = CaptureSession::open(flags.capture, *options);
  if (!session) return session.error();
  (*session)->begin("attach", {}, [&](Capture& capture) {
    for (std::uint32_t pid : targets->pids) {
      capture.announce(pid);
      capture.select_process(pid);
    }
    if (targets->cgroup) capture.select_cgroup(*targets->cgroup);
  });
  CaptureSession::Until until{.command = nullptr, .pids = targets->pids};
  if (targets->cgroup) until.pids.clear();  // whoever enters the container later is traced too
  return (*session)->run_until(until);
}

}  // namespace

void add_attach(CLI::App& app, Action& action) {
  auto flags = std::make_shared<AttachFlags>();
  CLI::App* sub = app.add_subcommand("attach", "Trace processes that run already");
  sub->add_option("-p,--pid", flags->targets.pids, "These processes")
      ->type_name("PID")
      ->delimiter(',');
  sub->add_option("-n,--name", flags->targets.names, "Processes of this program")
      ->type_name("NAME");
  sub->add_option("--container", flags->targets.container,
                  "The processes of a container: the beginning of its id, or\nthe path of a cgroup")
      ->type_name("ID|CGROUP");
  flags->capture.add_to(*sub, true);
  sub->footer(footer());
  sub->callback([flags, &action] {
    if (flags->targets.empty())
      throw CLI::RequiredError("attach: one of --pid, --name or --container");
    action = [flags] { return attach(*flags); };
  });
}

}  // namespace cudabpf::cli
