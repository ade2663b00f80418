// cudabpf top: shows who uses CUDA, as it happens, and writes nothing, unless it is to keep what
// happened last.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "cli/captures.hpp"
#include "cli/commands.hpp"
#include "cli/flags/recorder_flags.hpp"
#include "cli/help.hpp"
#include "cli/request/quantities.hpp"
#include "util/console/full_screen.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

struct TopFlags {
  CaptureFlags capture;
  RecorderFlags recorder;
  std::vector<std::uint32_t> pids;
  std::vector<std::string> command;
  bool inside = false, once = false;
  std::string interval = "1s";
};

Result<int> top(TopFlags flags) {
  constexpr std::uint64_t SHORTEST_NS = 100'000'000;
  TopSink::Options watch;
  watch.interval_ns = TRY(parse_duration(flags.interval, "--interval"));
  watch.once = flags.once;
  if (watch.interval_ns < SHORTEST_NS)
    return Error{"--interval " + flags.interval + " is too short", "it takes 100ms at least",
                 exit_code::USAGE};
  flags.capture.watch = watch;
  flags.capture.recorder = TRY(flags.recorder.options());
  flags.capture.on_screen =
      !flags.once && !flags.capture.as_json && can_take_terminal(STDIN_FILENO, STDOUT_FILENO);
  if (flags.once) flags.capture.duration = flags.interval;
  if (!flags.command.empty()) {
    RunFlags run;
    run.capture = std::move(flags.capture);
    run.inside = flags.inside;
    run.command = std::move(flags.command);
    return capture_command(run);
  }
  if (flags.inside)
    return Error{"--inside without a command", "give it after --", exit_code::USAGE};
  if (flags.pids.empty()) return capture_machine(flags.capture);
  AttachFlags attach;
  attach.capture = std::move(flags.capture);
  attach.targets.pids = std::move(flags.pids);
  return capture_running(attach);
}

}  // namespace

void add_top(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<TopFlags>(
      app, action, "top", "Show which processes use CUDA, live; a trace is written only on demand",
      top);
  auto* pids = sub.add_option("-p,--pid", flags.pids, "Only these processes")
                   ->type_name("PID")
                   ->delimiter(',');
  sub.add_flag("--inside", flags.inside,
               "Record inside the command's processes instead of with eBPF: without root");
  flags.capture.add_kernel_count_to(sub);
  sub.add_flag("--kernels", flags.capture.single_launches,
               "Also name kernels: launches are recorded one by one instead of only counted, "
               "which takes cudabpf more processor time. With --inside they always are");
  flags.capture.add_what_is_counted_to(sub);
  sub.add_option("--interval", flags.interval, "How often to report (500ms, 5s)")
      ->type_name("TIME")
      ->capture_default_str();
  auto* once = sub.add_flag("--once", flags.once, "Show one interval, and end");
  sub.add_flag("--json", flags.capture.as_json,
               "Print one JSON object per line, for each interval");
  flags.capture.add_duration_to(sub)->excludes(once);
  flags.capture.add_watch_hang_to(sub);
  flags.recorder.add_to(sub);
  sub.add_option("command", flags.command,
                 "A command to start and watch, after --. On the full-screen view its input and "
                 "output go to /dev/null; redirect its output to keep it")
      ->type_name("CMD")
      ->excludes(pids);
  sub.positionals_at_end();
  add_footer(sub,
             {"sudo cudabpf top   the whole machine", "sudo cudabpf top --pid 4242 --interval 5s",
              "sudo cudabpf top --once --json   for scripts",
              "sudo cudabpf top --dump-on error   a trace of what led to the first error",
              "cudabpf top --inside -- python3 inference.py   without root"},
             capture_statuses());
}

}  // namespace cudabpf::cli
