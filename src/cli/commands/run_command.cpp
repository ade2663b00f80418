// cudabpf run -- CMD: traces a command and its children.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/capture_flags.hpp"
#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/session.hpp"
#include "cli/started_command.hpp"

namespace cudabpf::cli {

namespace {

struct RunFlags {
  CaptureFlags capture;
  std::string user;
  bool as_root = false;
  std::vector<std::string> command;
};

Result<int> run(const RunFlags& flags) {
  StartedCommand::Options command;
  command.arguments = flags.command;
  command.user = caller().user;
  if (flags.as_root) command.user.reset();
  if (!flags.user.empty()) command.user = TRY(find_user(flags.user));
  // One user's PATH and LD_PRELOAD are nothing for another, least of all for root.
  bool own = !caller().user || (command.user && command.user->uid == caller().user->uid);
  command.environment = own ? caller().environment : own_environment();
  auto options = TRY(flags.capture.source_options());
  options.library_path = value_in(command.environment, "LD_LIBRARY_PATH");

  // The child is forked before any thread starts, and waits.
  auto child = TRY(StartedCommand::prepare(command));
  auto pid = static_cast<std::uint32_t>(child.pid());
  if (!options.follow_children) options.only_in = {pid};
  auto session = TRY(CaptureSession::open(flags.capture, options));
  Session header;
  header.mode = "run";
  header.command = flags.command;
  TRY(session->begin(std::move(header),
                     [&](Capture& capture) { capture.source().select_process(pid); }));
  TRY(child.release());
  return session->run_until({.command = &child, .pids = {}});
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* sub = app.add_subcommand("run", "Trace a command and all its children");
  flags->capture.add_to(*sub, false);
  auto* user = sub->add_option("--user", flags->user,
                               "Start the command as this user [whoever called sudo]");
  user->type_name("USER");
  sub->add_flag("--as-root", flags->as_root, "Start the command as root")->excludes(user);
  sub->add_option("command", flags->command, "The command and its arguments, after --")
      ->required()
      ->type_name("CMD");
  sub->positionals_at_end();
  add_footer(*sub,
             {"sudo cudabpf run -- python inference.py",
              "sudo cudabpf run --kernel -o trace.jsonl.zst -- ./app   the driver's ioctls, too",
              "sudo cudabpf run --no-returns -- ./app   at the least cost"},
             capture_statuses());
  sub->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace cudabpf::cli
