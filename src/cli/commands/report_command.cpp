// cudabpf report: a trace as one HTML file, to look at and to send to others.
#include "analyze/report/report.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "cli/export_files.hpp"
#include "cli/reading_command.hpp"
#include "cli/request/trace_paths.hpp"
#include "cudabpf/abi.h"
#include "util/console/log.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

struct ReportFlags : TraceFlags {
  std::string output;
  bool open = false;
};

analyze::Json report_files_json(const ExportFiles& files) {
  analyze::Json json = analyze::Json::array();
  for (const auto& file : files.files())
    json.push_back({{"path", file.path}, {"bytes", file.stream->size()}});
  return {{"files", json}};
}

// Hands the file to the desktop's browser, and does not wait for it.
void open_in_browser(const std::string& path) {
  std::string absolute = std::filesystem::absolute(path).string(), program = "xdg-open";
  char* arguments[] = {program.data(), absolute.data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  pid_t pid = 0;
  int error = ::posix_spawnp(&pid, program.c_str(), &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error) log::warning("cannot start xdg-open: open {} in a browser", path);
}

Result<int> write_report(const ReportFlags& flags) {
  ExportFiles files(flags.output, flags.paths);
  if (files.to_stdout() && flags.open)
    return Error{"--open opens a file, and -o - writes none", "name a file with -o",
                 exit_code::USAGE};
  auto reader = TRY(open_trace(flags));
  analyze::Report report(reader->names(), flags.part.pid, reader->facts().part,
                         moments_of(flags, reader->facts()));
  TRY(read_trace(*reader, {&report}));
  auto* out = TRY(files.add("html"));
  report.write(*out, reader->facts(), analyze::input_name(flags.paths.front()));
  if (auto done = files.finish(); !done) {
    files.discard();
    return done.error();
  }
  print_answer(flags, reader->facts(),
               {.json = [&] { return report_files_json(files); },
                .page =
                    [&](Page& page) {
                      page.heading("written");
                      for (const auto& file : files.files())
                        add_written(page, file.path, file.stream->size());
                    }},
               files.to_stdout() ? stderr : stdout);
  if (flags.open) open_in_browser(files.files().front().path);
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* sub = app.add_subcommand(
      "report", "One HTML file for any browser: verdict, timeline, tables; to look at or to send");
  add_trace_flags(
      *sub, *flags,
      {"report traces/h200-gpt2.jsonl.zst   writes h200-gpt2.html",
       "report --phase inference -o inference.html traces/h200-gpt2.jsonl.zst   a part of it"});
  sub->add_option("-o,--output", flags->output,
                  "The file, or a folder for it; -: stdout [named after the trace]")
      ->type_name("PATH");
  sub->add_flag("--open", flags->open, "Open it in the desktop's browser");
  sub->callback([flags, &action] { action = [flags] { return write_report(*flags); }; });
}

}  // namespace cudabpf::cli
