// cudabpf without a subcommand: traces every process on the machine, if an option asks for it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/captures.hpp"
#include "cli/commands.hpp"
#include "cli/commands/with_library.hpp"
#include "cli/help.hpp"
#include "cli/metrics_server.hpp"
#include "cli/session.hpp"
#include "cli/shown.hpp"
#include "collect/bpf/bpf_source.hpp"
#include "util/console/log.hpp"

namespace cudabpf::cli {

Result<int> capture_machine(const CaptureFlags& flags) {
  auto options = TRY(flags.source_options());
  CaptureSession::OpenSource open_source = BpfSource::open;
  if (options.gpu != GpuTiming::none)
    open_source = [&flags](SourceOptions chosen) {
      InsideSource::Place place;
      place.listener = flags.listener;
      place.whom = InsideSource::Place::For::all;
      return open_with_library(std::move(chosen), std::move(place));
    };
  auto session = TRY(CaptureSession::open(flags, std::move(options), open_source));
  Session header;
  header.mode = "machine";
  TRY(session->begin(std::move(header), [](Capture& capture) { capture.source().select_all(); }));
  return session->run_until({});
}

namespace {

struct MachineFlags {
  CaptureFlags capture;
  MetricsServer::Options metrics;
  bool has_metrics = false;
};

Result<int> trace_machine(MachineFlags flags) {
  std::unique_ptr<MetricsServer> server;
  if (flags.has_metrics) {
    server = TRY(MetricsServer::open(flags.metrics));
    flags.capture.metrics = server.get();
  }
  return capture_machine(flags.capture);
}

// Whoever types the name alone wants to know what it does, not to fill a disk.
Result<int> introduce(const CLI::App& app) {
  show(help_of(app), stdout);
  std::fflush(stdout);
  log::hint(
      "this traces every process on the machine: `sudo cudabpf --duration 30s`, or without a "
      "subcommand any other option");
  return 0;
}

bool asks_for_anything(const CLI::App& app) {
  auto options = app.get_options();
  return std::any_of(options.begin(), options.end(),
                     [](const CLI::Option* option) { return option->count() > 0; });
}

}  // namespace

void add_machine(CLI::App& app, Action& action) {
  auto flags = std::make_shared<MachineFlags>();
  flags->capture.add_to(app, true);
  app.add_option("--metrics", flags->metrics.listen,
                 "Also serve metrics of what is traced at IP:PORT, as `cudabpf metrics` does. "
                 "--redact does not affect them")
      ->type_name("ADDRESS")
      ->each([flags](const std::string&) { flags->has_metrics = true; });
  flags->metrics.push.add_to(app, "--metrics");
  flags->metrics.engines.add_to(app, "--metrics");
  add_footer(app,
             {"sudo cudabpf run -- python3 inference.py   a command and its children",
              "sudo cudabpf attach --pid 4242   a process that is already running",
              "sudo cudabpf --duration 30s   the whole machine",
              "cudabpf summary traces/h200-gpt2.jsonl.zst   answers from a trace"},
             capture_statuses());
  app.callback([flags, &app, &action] {
    refuse_misplaced(app);
    if (!app.get_subcommands().empty()) return;
    if (asks_for_anything(app))
      action = [flags] { return trace_machine(*flags); };
    else
      action = [&app] { return introduce(app); };
  });
}

}  // namespace cudabpf::cli
