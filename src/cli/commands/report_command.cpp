// cudabpf report: a trace as one HTML file, to look at and to send to others.
#include "analyze/report/report.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "analyze/diff/difference.hpp"
#include "cli/commands.hpp"
#include "cli/export_files.hpp"
#include "cli/reading_command.hpp"
#include "cli/request/trace_paths.hpp"
#include "cli/traces_apart.hpp"
#include "cudabpf/abi.h"
#include "util/console/log.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

struct ReportFlags : TraceFlags {
  std::string output;
  bool open = false;
};

// Whether xdg-open is still there after a moment, or has found a browser. Some browsers stay in its
// place, so it is not waited for any longer.
bool found_browser(pid_t pid) {
  constexpr int MAX_MS = 3000, STEP_MS = 50;
  for (int waited = 0; waited < MAX_MS; waited += STEP_MS) {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) && !WEXITSTATUS(status);
    std::this_thread::sleep_for(std::chrono::milliseconds(STEP_MS));
  }
  return true;
}

// Hands the file to the desktop's browser.
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
  if (error)
    log::warning("there is no xdg-open here to open it with: open {} in a browser", absolute);
  else if (!found_browser(pid))
    log::warning("xdg-open found no browser here: copy {} to where there is one", absolute);
}

// What a page calls a trace: its file, wherever that lies.
std::string title_of(const std::string& path) {
  return path == "-" ? analyze::input_name(path) : std::filesystem::path(path).filename().string();
}

// A trace that was read for a page; the reader owns the names.
struct ReadTrace {
  std::unique_ptr<analyze::TraceReader> reader;
  std::unique_ptr<analyze::Report> report;
  std::unique_ptr<analyze::Measures> measures;  // of two traces that are compared
};

Result<ReadTrace> read_alone(const ReportFlags& flags) {
  ReadTrace read{TRY(open_trace(flags)), nullptr, nullptr};
  const analyze::TraceFacts& facts = read.reader->facts();
  read.report = std::make_unique<analyze::Report>(read.reader->names(), flags.part.whose,
                                                  facts.part, moments_of(flags, facts));
  TRY(read_trace(*read.reader, {read.report.get()}));
  TRY(check_whose(flags.part.whose, read.report->found_thread()));
  return read;
}

Result<ReadTrace> read_one_of_two(const ReportFlags& flags, const Paths& paths) {
  ReadTrace read{TRY(open_trace(paths)), nullptr, nullptr};
  const analyze::TraceFacts& facts = read.reader->facts();
  read.report =
      std::make_unique<analyze::Report>(read.reader->names(), analyze::ThreadFilter(), facts.part,
                                        moments_of(flags, facts), analyze::ReportOfTwo::MAX_EVENTS);
  read.measures = std::make_unique<analyze::Measures>(read.reader->names());
  TRY(read_trace(*read.reader, {read.report.get(), read.measures.get()}));
  return read;
}

analyze::DiffSide side_of(const ReadTrace& read) {
  return {{figures_of(*read.measures, {})}, read.measures.get(), 0};
}

void print_two(const ReportFlags& flags, const ReadTrace& a, const ReadTrace& b,
               const ExportFiles& files) {
  std::FILE* to = files.to_stdout() ? stderr : stdout;
  if (flags.json) {
    analyze::Json json = {{"a", analyze::facts_json(a.reader->facts())},
                          {"b", analyze::facts_json(b.reader->facts())}};
    json.update(files_json(files));
    print_json(json, to);
    return;
  }
  Page page = page_for(to);
  for (const ReadTrace* read : {&a, &b}) {
    page.show_moments(moments_of(flags, read->reader->facts()));
    analyze::add_heading(page, read->reader->facts());
    if (!read->reader->facts().calls) page.line("The trace holds no calls.");
  }
  add_files(page, files);
  for (const ReadTrace* read : {&a, &b}) analyze::add_facts(page, read->reader->facts());
  page.say_left_out();
  show(page.take(), to);
}

Result<> write_two(const ReadTrace& a, const ReadTrace& b, const std::vector<Paths>& traces,
                   ExportFiles& files) {
  analyze::ReportOfTwo two(
      {*a.report, a.reader->facts(), title_of(traces[0].front())},
      {*b.report, b.reader->facts(), title_of(traces[1].front())},
      difference_json(difference(side_of(a), side_of(b), analyze::Kernels::By::name)));
  auto* out = TRY(files.add(fmt::format("vs-{}.html", name_of_trace(traces[1].front()))));
  two.write(*out);
  return ok();
}

Result<std::vector<Paths>> one_or_two(const ReportFlags& flags) {
  auto traces = TRY(traces_of(flags.paths, TracesAre::any));
  if (traces.size() > 2)
    return Error{fmt::format("report takes one trace, or two to compare, not {}", traces.size()),
                 "diff compares several runs a side; merge makes one trace of several hosts'",
                 exit_code::USAGE};
  if (traces.size() == 2 && (flags.part.any() || flags.part.whose.any()))
    return Error{"two traces are compared whole",
                 "a part, or one thread, can be shown of one trace", exit_code::USAGE};
  return traces;
}

Result<int> write_report(const ReportFlags& flags) {
  ExportFiles files(flags.output, flags.paths);
  if (files.to_stdout() && flags.open)
    return Error{"--open opens a file, and -o - writes none", "use -o to name a file",
                 exit_code::USAGE};
  auto traces = TRY(one_or_two(flags));
  ReadTrace a, b;
  if (traces.size() == 2) {
    a = TRY(read_one_of_two(flags, traces[0]));
    b = TRY(read_one_of_two(flags, traces[1]));
    TRY(write_two(a, b, traces, files));
  } else {
    a = TRY(read_alone(flags));
    auto* out = TRY(files.add("html"));
    a.report->write(*out, a.reader->facts(), title_of(flags.paths.front()));
  }
  if (auto done = files.finish(); !done) {
    files.discard();
    return done.error();
  }
  if (b.reader)
    print_two(flags, a, b, files);
  else
    print_answer(flags, a.reader->facts(),
                 {.json = [&] { return files_json(files); },
                  .page = [&](Page& page) { add_files(page, files); }},
                 files.to_stdout() ? stderr : stdout);
  if (flags.open) open_in_browser(files.files().front().path);
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<ReportFlags>(app, action, "report",
                                               "Write one trace, or two compared, as an HTML file "
                                               "for any browser: verdict, timeline, tables",
                                               write_report);
  add_trace_flags(
      sub, flags,
      {"report traces/h200-gpt2.jsonl.zst   writes h200-gpt2.html",
       "report --phase inference -o inference.html traces/h200-gpt2.jsonl.zst   a part of it",
       "report traces/h200-gpt2.jsonl.zst traces/h200-transformer.jsonl.zst   two, side by side"});
  sub.get_option("trace")->description(
      "The trace, or two to compare, plain or .zst; if rotated, all files in order; -: stdin");
  sub.add_option("-o,--output", flags.output,
                 "The file, or a folder for it; -: stdout [named after the trace]")
      ->type_name("PATH");
  add_whose_flags(sub, flags.part);
  sub.add_flag("--open", flags.open, "Open it in the desktop's browser");
}

}  // namespace cudabpf::cli
