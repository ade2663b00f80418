// cudabpf without a subcommand: traces every process on the machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/capture_flags.hpp"
#include "cli/commands.hpp"
#include "cli/session.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

Result<int> trace_machine(const CaptureFlags& flags) {
  auto session = TRY(CaptureSession::open(flags, TRY(flags.source_options())));
  Session header;
  header.mode = "machine";
  TRY(session->begin(std::move(header), [](Capture& capture) { capture.source().select_all(); }));
  return session->run_until({});
}

}  // namespace

void add_machine(CLI::App& app, Action& action) {
  auto flags = std::make_shared<CaptureFlags>();
  flags->add_to(app, true);
  app.callback([flags, &app, &action] {
    refuse_misplaced(app);
    if (app.get_subcommands().empty()) action = [flags] { return trace_machine(*flags); };
  });
}

std::string footer() {
  using namespace exit_code;
  return fmt::format(
      "Examples:\n"
      "  sudo cudabpf run -- python inference.py     a command and its children\n"
      "  sudo cudabpf attach --pid 4242              a process that is already running\n"
      "  sudo cudabpf --duration 30s                 the whole machine\n"
      "\n"
      "Exit status: for `run`, its command's ({} + N if signal N ended it). Otherwise {} done,\n"
      "{} wrong usage, {} not permitted, {} kernel not supported, {} no such target, {} the trace\n"
      "is incomplete, {} other failure, {} command cannot be executed, {} command not found.",
      SIGNAL_BASE, OK, USAGE, NOT_PERMITTED, KERNEL_UNSUPPORTED, NO_TARGET, OUTPUT_FAILED, FAILED,
      CANNOT_EXECUTE, NOT_FOUND);
}

}  // namespace cudabpf::cli
