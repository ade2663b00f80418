#include "sink/run_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "util/page/page.hpp"

namespace cudabpf {

namespace {

// `path` as one word of a shell command line.
std::string shell_word(const std::string& path) {
  auto is_plain = [](unsigned char c) {
    return std::isalnum(c) ||
           std::string_view("/._-+,:@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!path.empty() && std::all_of(path.begin(), path.end(), is_plain)) return path;
  if (printable(path) != path) {  // how bash and zsh write unprintable bytes
    std::string word = "$'";
    for (char c : path) {
      auto byte = static_cast<unsigned char>(c);
      word += is_plain(byte) ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
    }
    return word + "'";
  }
  std::string word = "'";
  for (char c : path) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// Each part of the page begins after an empty line, as tables do.
void begin(Page& page, std::string_view name) {
  page.blank();
  page.heading(name);
}

void add_losses(Page& page, const Totals& totals, const TraceWritten& written) {
  bool any = false;
  if (written.reader_gone) {
    begin(page, "lost");
    any = true;
    page.line(fmt::format("  {} that came after the trace's reader had gone",
                          count_of(written.lost, "event", "events")));
  }
  std::uint64_t unwritten = written.reader_gone ? 0 : written.lost;
  for (std::size_t i = 0; i < LOSS_COUNT; i++) {
    auto reason = static_cast<Loss>(i);
    std::uint64_t count = totals.losses[i] + (reason == Loss::output ? unwritten : 0);
    if (!count) continue;
    if (!any) begin(page, "lost");
    any = true;
    page.line(
        fmt::format("  {} {}{}", with_commas(count), info(reason).name,
                    info(reason).degraded ? " (the events are there, but lack something)" : ""));
    page.paragraph(info(reason).advice, 4);
  }
}

void add_trace(Page& page, const RunEnd& end, const TraceWritten& written) {
  if (written.path == "-" || written.path == NULL_DEVICE) return;
  begin(page, "trace");
  page.line(fmt::format(
      "  {}  {}{}, {}{}", written.path,
      written.files > 1 ? fmt::format("the last of {} files; in all: ", written.files) : "",
      human_bytes(written.bytes), count_of(written.lines, "line", "lines"),
      written.complete ? "" : "; its end could not be written"));
  if (end.compresses > 1)
    page.paragraph(fmt::format("-o FILE.zst would have taken about {} ({:.0f} times less).",
                               human_bytes(static_cast<std::uint64_t>(
                                   static_cast<double>(written.bytes) / end.compresses)),
                               end.compresses),
                   4);
  if (!end.totals.counts.calls) return;
  begin(page, "next");
  if (written.files <= 1) {
    std::string file = shell_word(written.path);
    page.line(fmt::format("  cudabpf summary{} {}", end.answer.empty() ? "" : " --all", file));
    page.line(fmt::format("  cudabpf report {}", file));
  }
  page.line("  cudabpf schema    what every field means");
}

std::string_view why_no_calls(const RunEnd& end) {
  if (end.libraries) return "No traced process called a traced function of libcuda.";
  if (!end.inside) return "No libcuda was found or loaded.";
  if (end.totals.losses[static_cast<std::size_t>(Loss::process_unrecorded)])
    return "No process that called cuInit could be recorded.";
  return "Nothing was recorded: no process called cuInit, where recording starts (a program that "
         "finds no libcuda never does), or the program is linked statically, clears its "
         "environment, or runs below another root (chroot), where the library that records is not.";
}

}  // namespace

std::string render_summary(const RunEnd& end, const Terminal& terminal) {
  const Totals& totals = end.totals;
  const EventCounts& counts = totals.counts;
  Page page(terminal);
  if (end.answer.empty())
    page.heading(fmt::format(
        "{} of {} in {}{}", count_of(counts.calls, "call", "calls"),
        count_of(totals.processes, "process", "processes"), human_time(totals.duration_ns),
        counts.unfinished ? fmt::format("; {} did not return", with_commas(counts.unfinished))
                          : ""));
  else
    page.painted_lines(end.answer);
  if (!counts.calls) page.paragraph(why_no_calls(end), 2);
  if (counts.read_faults) {
    begin(page, "not readable");
    page.paragraph(
        fmt::format("{} with pointers to memory that could not be read: \"read_fault\" marks them",
                    count_of(counts.read_faults, "event", "events")),
        2);
  }
  add_losses(page, totals, end.written ? *end.written : TraceWritten());
  if (end.written) add_trace(page, end, *end.written);
  return page.take();
}

}  // namespace cudabpf
