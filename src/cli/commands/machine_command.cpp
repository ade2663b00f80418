// cudabpf without a subcommand: traces every process on the machine.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/captures.hpp"
#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/session.hpp"
#include "collect/bpf/bpf_source.hpp"

namespace cudabpf::cli {

Result<int> capture_machine(const CaptureFlags& flags) {
  auto session = TRY(CaptureSession::open(flags, TRY(flags.source_options()), BpfSource::open));
  Session header;
  header.mode = "machine";
  TRY(session->begin(std::move(header), [](Capture& capture) { capture.source().select_all(); }));
  return session->run_until({});
}

void add_machine(CLI::App& app, Action& action) {
  auto flags = std::make_shared<CaptureFlags>();
  flags->add_to(app, true);
  add_footer(app,
             {"sudo cudabpf run -- python inference.py   a command and its children",
              "sudo cudabpf attach --pid 4242   a process that is already running",
              "sudo cudabpf --duration 30s   the whole machine",
              "cudabpf summary traces/h200-gpt2.jsonl.zst   what a trace says"},
             capture_statuses());
  app.callback([flags, &app, &action] {
    refuse_misplaced(app);
    if (app.get_subcommands().empty()) action = [flags] { return capture_machine(*flags); };
  });
}

}  // namespace cudabpf::cli
