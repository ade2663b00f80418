// cudabpf run -- CMD: traces a command and its children.
#include <unistd.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/captures.hpp"
#include "cli/commands.hpp"
#include "cli/commands/with_library.hpp"
#include "cli/help.hpp"
#include "cli/request/inside.hpp"
#include "cli/request/program_path.hpp"
#include "cli/request/recordable.hpp"
#include "cli/session.hpp"
#include "cli/started_command.hpp"
#include "collect/bpf/bpf_source.hpp"
#include "collect/bpf/features.hpp"
#include "collect/bpf/nvidia_devices.hpp"
#include "collect/inside/inside_source.hpp"
#include "collect/merged_source.hpp"
#include "util/console/log.hpp"
#include "util/system/pidfd.hpp"

namespace cudabpf::cli {

namespace {

Result<> check_ebpf() {
  TRY(check_permissions());
  return check_kernel();  // a container's root may have the rights in name alone
}

// The library to record with, inside the command; empty: it is traced by eBPF.
Result<std::string> way_inside(const RunFlags& flags) {
  std::string option = flags.capture.for_ebpf_alone();
  if (flags.inside || flags.iteration.any()) {
    if (!option.empty())
      return Error{option + " works only with eBPF", "leave it out, or leave out --inside",
                   exit_code::USAGE};
    return inside_library();
  }
  auto ebpf = check_ebpf();
  if (ebpf) return std::string();
  auto library = inside_library();
  if (!library || !option.empty()) {
    Error error = ebpf.error();
    error.hint += library
                      ? fmt::format("; without {}, `run` records inside the command", option)
                      : fmt::format("; recording without root is not possible either: {}{}{}",
                                    library.error().message,
                                    library.error().hint.empty() ? "" : "; ", library.error().hint);
    return error;
  }
  if (!flags.capture.quiet)
    log::hint("calls are recorded inside the command's processes (--inside): {}",
              ebpf.error().message);
  return library;
}

// With the rights that eBPF takes, the kernel reports processes, and of the driver more than what
// libcuda's imports show.
Result<std::unique_ptr<Source>> open_inside(SourceOptions options, InsideSource::Place place) {
  if (!options.driver || !check_permissions()) return InsideSource::open(options, std::move(place));
  SourceOptions of_calls = options, of_others = options;
  of_calls.driver = of_calls.processes = false;
  of_others.calls = false;
  of_others.gpu = GpuTiming::none;
  auto calls = TRY(InsideSource::open(std::move(of_calls), place));
  auto others = BpfSource::open(std::move(of_others));
  if (others)
    return std::unique_ptr<Source>(std::make_unique<MergedSource>(
        std::move(calls), std::move(*others), MergedSource::Of::others));
  log::hint(
      "requests to the driver are recorded at libcuda's imports, because tracing with eBPF failed: "
      "{}",
      others.error().message);
  return InsideSource::open(std::move(options), std::move(place));
}

// The kernel's record of a call comes before that of its stack: a call's return shows that it has
// come.
Result<> let_stacks_follow(SourceOptions& options) {
  if (!options.filter.returns)
    return Error{"--python and --no-returns work together only with --inside",
                 "leave out --no-returns, or add --inside", exit_code::USAGE};
  options.filter.stacks_follow = true;
  return ok();
}

// How the command is started, and as whom.
Result<StartedCommand::Options> as_asked(const RunFlags& flags) {
  if (geteuid() != 0 && (flags.as_root || !flags.user.empty()))
    return Error{"only root can start a command as another user",
                 flags.as_root ? "leave out --as-root" : "leave out --user",
                 exit_code::NOT_PERMITTED};
  StartedCommand::Options command;
  command.arguments = flags.command;
  command.terminal_is_taken = flags.capture.on_screen;
  command.output_is_taken = flags.capture.output == "-";
  command.user = caller().user;
  if (flags.as_root) command.user.reset();
  if (!flags.user.empty()) command.user = TRY(find_user(flags.user));
  // One user's PATH and LD_PRELOAD are nothing for another, least of all for root.
  bool own = !caller().user || (command.user && command.user->uid == caller().user->uid);
  command.environment = own ? caller().environment : own_environment();
  return command;
}

}  // namespace

Result<int> capture_command(const RunFlags& flags) {
  auto command = TRY(as_asked(flags));
  auto options = TRY(flags.capture.source_options());
  auto taper = TRY(flags.iteration.taper(flags.capture));
  options.taping = taper.get();
  Launched launched = behind_env(flags.command, command.environment);
  options.library_path = value_in(launched.environment, "LD_LIBRARY_PATH");
  CaptureSession::OpenSource open_source = BpfSource::open;
  std::string library = TRY(way_inside(flags));
  bool by_ebpf = library.empty();
  options.filter.tally &= by_ebpf;  // from inside, all calls are recorded
  if (!by_ebpf) options.filter.shapes = flags.capture.wants_shapes();
  bool times_gpus = options.gpu != GpuTiming::none;
  if (by_ebpf && options.python) TRY(let_stacks_follow(options));
  if (by_ebpf && (times_gpus || options.python || flags.capture.ranges))
    library = TRY(inside_library());
  if (!library.empty()) {
    std::string listener = TRY(Listener::choose_path(value_in(command.environment, "TMPDIR")));
    command.environment = environment_inside(std::move(command.environment), library, listener,
                                             {.libcuda = !by_ebpf || times_gpus || options.python,
                                              .nvtx = flags.capture.wants_ranges()});
    uid_t user = command.user ? command.user->uid : geteuid();
    std::string program = find_program(flags.command[launched.program], launched.environment);
    if (std::string why = why_not_recordable(program, launched.environment, user); !why.empty())
      log::warning("{}: {}",
                   by_ebpf ? "what only a library inside the command could record is not recorded"
                           : "the command itself cannot be recorded",
                   why);
    auto devices = options.driver ? nvidia_devices() : DriverDevices();
    open_source = [listener, user, devices, by_ebpf](SourceOptions chosen) {
      InsideSource::Place place{listener, user, devices};
      return by_ebpf ? open_with_library(std::move(chosen), std::move(place))
                     : open_inside(std::move(chosen), std::move(place));
    };
  }

  // The child is forked before any thread starts, and waits.
  auto child = TRY(StartedCommand::prepare(command));
  auto pid = static_cast<std::uint32_t>(child.pid());
  if (!options.follow_children) options.only_in = {pid};
  options.give_up = [ended = child.pidfd()] { return is_readable(ended); };
  CaptureFlags how = flags.capture;
  how.taper = taper.get();
  auto session = TRY(CaptureSession::open(how, options, open_source));
  Session header;
  header.mode = "run";
  header.ranges = !library.empty() && flags.capture.wants_ranges();
  header.python = options.python;
  header.command = flags.command;
  TRY(session->begin(std::move(header),
                     [&](Capture& capture) { capture.source().select_process(pid); }));
  TRY(child.release());
  auto status = session->run_until({.command = &child, .pids = {}});
  if (taper) say_captured(*taper);
  return status;
}

void add_run(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<RunFlags>(
      app, action, "run", "Trace a command and all its children", capture_command);
  flags.capture.add_to(sub, false);
  auto* user = sub.add_option("--user", flags.user,
                              "Start the command as this user [the one who called sudo]");
  user->type_name("USER");
  sub.add_flag("--inside", flags.inside,
               "Record inside the command's processes instead of with eBPF: without root, and at "
               "a tenth of the cost. libcuda loads a library, which changes libcuda's functions "
               "in memory. Calls before cuInit are not seen");
  flags.capture.add_gpu_to(sub);
  flags.capture.add_ranges_to(sub);
  flags.capture.add_python_to(sub);
  flags.iteration.add_to(sub);
  sub.add_flag("--as-root", flags.as_root, "Start the command as root")->excludes(user);
  sub.add_option("command", flags.command, "The command and its arguments, after --")
      ->required()
      ->type_name("CMD");
  sub.positionals_at_end();
  add_footer(sub,
             {"sudo cudabpf run -- python3 inference.py",
              "sudo cudabpf run --kernel -o trace.jsonl.zst -- ./app   the driver's ioctls, too",
              "sudo cudabpf run --no-returns -- ./app   at the least cost by eBPF",
              "cudabpf run --inside -- python3 inference.py   without root",
              "sudo cudabpf run --gpu -- ./app   with GPU times, from CUPTI"},
             capture_statuses());
}

}  // namespace cudabpf::cli
