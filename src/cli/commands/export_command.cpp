// cudabpf export: a trace in the formats of other programs.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/export/alnair_logs.hpp"
#include "analyze/export/chrome_trace.hpp"
#include "analyze/export/csv_table.hpp"
#include "analyze/export/folded_stacks.hpp"
#include "analyze/export/perfetto_trace.hpp"
#include "analyze/export/tracks.hpp"
#include "analyze/stacks/stack_weights.hpp"
#include "cli/commands.hpp"
#include "cli/export_files.hpp"
#include "cli/reading_command.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

struct ExportFlags : TraceFlags {
  std::string format = "chrome";
  std::string output;
  std::string weight;  // of folded stacks; empty: not said
  bool plain = false;
};

// The writers of the formats that were asked for.
struct Writers {
  std::vector<std::unique_ptr<analyze::TrackWriter>> timeline_writers;
  std::vector<std::unique_ptr<analyze::Analysis>> analyses;
};

Result<> add_timelines(Writers& writers, const ExportFlags& flags, bool all, ExportFiles& files,
                       analyze::TraceReader& reader) {
  analyze::Names& names = reader.names();
  std::vector<analyze::TrackWriter*> timelines;
  if (all || flags.format == "chrome") {
    auto* stream = TRY(files.add("chrome.json"));
    writers.timeline_writers.push_back(std::make_unique<analyze::ChromeTrace>(names, *stream));
  }
  if (all || flags.format == "perfetto") {
    auto* stream = TRY(files.add("perfetto-trace"));
    using Packets = analyze::PerfettoTrace::Packets;
    writers.timeline_writers.push_back(std::make_unique<analyze::PerfettoTrace>(
        names, *stream, flags.plain ? Packets::plain : Packets::deflated));
  }
  for (auto& writer : writers.timeline_writers) timelines.push_back(writer.get());
  if (!timelines.empty())
    writers.analyses.push_back(
        std::make_unique<analyze::Tracks>(names, std::move(timelines), reader.facts().part));
  return ok();
}

analyze::StackMeasure measure_named(std::string_view name) {
  const auto& names = analyze::STACK_MEASURES;
  const auto* at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? analyze::StackMeasure::host
                           : static_cast<analyze::StackMeasure>(at - names.begin());
}

Result<Writers> make_writers(const ExportFlags& flags, ExportFiles& files,
                             analyze::TraceReader& reader) {
  Writers writers;
  analyze::Names& names = reader.names();
  bool all = flags.format == "all";
  if (all) TRY(files.make_folder());
  TRY(add_timelines(writers, flags, all, files, reader));
  if (all || flags.format == "csv") {
    auto* stream = TRY(files.add("csv"));
    writers.analyses.push_back(std::make_unique<analyze::CsvTable>(names, *stream));
  }
  if (all || flags.format == "folded") {
    auto* stream = TRY(files.add("folded.txt"));
    writers.analyses.push_back(
        std::make_unique<analyze::FoldedStacks>(names, *stream, measure_named(flags.weight)));
  }
  if (all || flags.format == "alnair") {
    auto streams = TRY(files.add_folder("alnair", {"metrics.log", "timeline.log"}));
    writers.analyses.push_back(std::make_unique<analyze::AlnairLogs>(
        names, *streams[0], *streams[1], reader.facts().part));
  }
  return writers;
}

// On Ctrl-C and similar signals, incomplete files must not stay. A second one ends the program at
// once.
volatile std::sig_atomic_t g_signal = 0;

void notice_signals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { g_signal = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

// Like analyze(), but a full disk or a signal ends it.
Result<> read_all(analyze::TraceReader& reader, const Writers& writers, ExportFiles& files) {
  while (const analyze::Line* line = TRY(reader.next())) {
    for (const auto& analysis : writers.analyses)
      analyze::show(*line, reader.facts().part, *analysis);
    if (auto why = files.failure()) return *why;
    if (g_signal)
      return Error{"interrupted", "what was written is removed", exit_code::SIGNAL_BASE + g_signal};
  }
  TRY(is_in_trace(reader.facts()));
  for (const auto& analysis : writers.analyses) analysis->finish(reader.facts());
  return files.finish();
}

// Refuses options that make no sense together.
Result<> check_flags(const ExportFlags& flags, const ExportFiles& files) {
  bool one_file = flags.format != "all" && flags.format != "alnair";
  bool perfetto = flags.format == "perfetto";
  if (files.to_stdout() && !one_file)
    return Error{
        "--format " + flags.format + " is several files: they cannot go to standard output",
        "name a folder with --output", exit_code::USAGE};
  if (files.to_stdout() && perfetto && ::isatty(STDOUT_FILENO) == 1)
    return Error{"--format perfetto is binary: it does not go to a terminal",
                 "name a file with --output, or pipe it to a program", exit_code::USAGE};
  if (!flags.weight.empty() && flags.format != "folded" && flags.format != "all")
    return Error{"--weight is of --format folded, not of " + flags.format,
                 "leave it out, or give --format folded", exit_code::USAGE};
  if (flags.plain && !perfetto && flags.format != "all")
    return Error{"--plain is of --format perfetto, not of " + flags.format,
                 "leave it out, or give --format perfetto", exit_code::USAGE};
  return ok();
}

Result<int> export_trace(const ExportFlags& flags) {
  ExportFiles files(flags.output, flags.paths);
  TRY(check_flags(flags, files));
  auto reader = TRY(open_trace(flags));
  notice_signals();
  auto writers = make_writers(flags, files, *reader);
  auto done = writers ? read_all(*reader, *writers, files) : writers.error();
  if (!done) {
    files.discard();
    if (g_signal) ::raise(g_signal);  // so that the shell knows of the signal
    return done.error();
  }
  print_answer(flags, reader->facts(),
               {.json = [&] { return files_json(files); },
                .page = [&](Page& page) { add_files(page, files); }},
               files.to_stdout() ? stderr : stdout);
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<ExportFlags>(app, action, "export",
                                               "Convert a trace for other programs", export_trace);
  add_trace_flags(sub, flags,
                  {"export traces/h200-gpt2.jsonl.zst --format perfetto   for ui.perfetto.dev",
                   "export traces/h200-gpt2.jsonl.zst --format csv -o - | grep cuMemcpy",
                   "export traces/h200-gpt2.jsonl.zst --iteration 10-12   a part of it",
                   "export traces/h200-gpt2.jsonl.zst --format all -o folder"});
  one_of(sub.add_option("--format", flags.format, "The format to write"),
         {"chrome", "perfetto", "csv", "folded", "alnair", "all"})
      ->capture_default_str();
  sub.add_option("-o,--output", flags.output,
                 "File, or folder for several files; -: stdout [named after the trace]")
      ->type_name("PATH");
  one_of(sub.add_option("--weight", flags.weight,
                        "What folded Python stacks add up: nanoseconds in calls (host) or of GPU "
                        "work (gpu), or bytes copied and filled (bytes) or allocated (allocated)"),
         {analyze::STACK_MEASURES.begin(), analyze::STACK_MEASURES.end()});
  sub.add_flag("--plain", flags.plain, "Do not deflate Perfetto's packets");
}

}  // namespace cudabpf::cli
