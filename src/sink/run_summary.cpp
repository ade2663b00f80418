#include "sink/run_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "follow/error_meanings.hpp"
#include "util/page/table.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t MAX_DRIVER = 10;
constexpr std::size_t MAX_FUNCTIONS = 12, MAX_KERNELS = 8, MAX_TRANSFERS = 6, MAX_ERRORS = 8,
                      MAX_GPUS = 16;

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

void add(Page& page, const Table& table) {
  if (!table.empty()) table.add_to(page);
}

// Each part of the page after an empty line, as tables are.
void begin(Page& page, std::string_view name) {
  page.blank();
  page.heading(name);
}

void add_calls(Page& page, const std::vector<Stats::Calls>& all) {
  Table table("calls", {{"count"}, {"total"}, {"mean", 1}, {"p99", 2}, {"errors"}});
  auto row = [&](std::string name, const Stats::Calls& calls, const Durations* each) {
    const Durations& times = calls.durations;
    auto time = [&](std::uint64_t ns) { return times.count() ? human_time(ns) : "-"; };
    table.row(std::move(name),
              {human_count(calls.count), time(times.total()), each ? time(each->mean()) : "",
               each ? time(each->quantile(0.99)) : "", figure_or_blank(calls.errors)});
  };
  // Leaving out a single function saves nothing: the line that says so takes as much room.
  std::size_t shown = all.size() <= MAX_FUNCTIONS + 1 ? all.size() : MAX_FUNCTIONS;
  Stats::Calls rest;
  for (std::size_t i = 0; i < all.size(); i++) {
    if (i < shown) {
      row(all[i].name, all[i], &all[i].durations);
      continue;
    }
    rest.count += all[i].count;
    rest.errors += all[i].errors;
    rest.durations.add(all[i].durations);
  }
  if (shown < all.size()) row(fmt::format("{} more functions", all.size() - shown), rest, nullptr);
  add(page, table);
}

void add_memory(Page& page, const Stats& stats) {
  Table table("memory", {{"allocations", 2}, {"allocated", 1}, {"freed", 1}, {"peak"}, {"held"}});
  for (std::size_t i = 0; i < MEMORY_KINDS; i++)
    if (const MemoryFigures& memory = stats.memory[i]; memory.allocations)
      table.row(std::string(MEMORY_KIND_NAMES[i]), cells_of(memory));
  add(page, table);
  if (stats.memory_left_out.any()) page.paragraph(text_of(stats.memory_left_out), 4);
}

void add_transfers(Page& page, const std::vector<Stats::Transfers>& all) {
  Table table("transfers", {{"count"}, {"bytes"}, {"mean"}});
  for (std::size_t i = 0; i < std::min(all.size(), MAX_TRANSFERS); i++)
    table.row(all[i].op + (all[i].async ? " async" : ""),
              {human_count(all[i].count), human_bytes(all[i].bytes),
               human_bytes(all[i].bytes / all[i].count)});
  add(page, table);
}

void add_kernels(Page& page, const Stats& stats) {
  const std::vector<Stats::Launches>& all = stats.launches;
  std::uint64_t total = 0;
  for (const auto& launches : all) total += launches.count;
  Table table("kernels", {{"runs"}, {"share"}});
  std::size_t shown = all.size() <= MAX_KERNELS + 1 ? all.size() : MAX_KERNELS;
  auto row = [&](const std::string& name, std::uint64_t count) {
    double share = 100.0 * static_cast<double>(count) / static_cast<double>(total);
    table.row(name, {human_count(count), fmt::format("{:.1f} %", share)});
  };
  std::uint64_t rest = total;
  for (std::size_t i = 0; i < shown; i++) {
    row(all[i].kernel.empty() ? "(name not known)" : all[i].kernel, all[i].count);
    rest -= all[i].count;
  }
  if (rest) row(fmt::format("{} more kernels", all.size() - shown), rest);
  add(page, table);
  if (stats.unknown_graphs)
    page.paragraph(
        fmt::format("What {} ran is not known, and not counted.",
                    count_of(stats.unknown_graphs, "launch of a graph", "launches of graphs")),
        2);
}

void add_driver(Page& page, const Stats& stats) {
  Table groups("asked of the driver", {{"count"}, {"total"}, {"mean", 1}, {"p99", 2}, {"failed"}});
  for (const auto& of : stats.driver_groups)
    groups.row(of.name, {human_count(of.count), human_time(of.durations.total()),
                         human_time(of.durations.mean()), human_time(of.durations.quantile(0.99)),
                         figure_or_blank(of.failed)});
  add(page, groups);
  Table ioctls("most often", {{"count"}, {"total"}, {"failed"}});
  for (std::size_t i = 0; i < std::min(stats.ioctls.size(), MAX_DRIVER); i++)
    ioctls.row(stats.ioctls[i].name,
               {human_count(stats.ioctls[i].count), human_time(stats.ioctls[i].durations.total()),
                figure_or_blank(stats.ioctls[i].failed)});
  add(page, ioctls);
  Table callers("by", {{"calls"}, {"ioctls"}, {"in them"}});
  for (std::size_t i = 0; i < std::min(stats.driver_callers.size(), MAX_DRIVER); i++) {
    const Stats::Caller& caller = stats.driver_callers[i];
    callers.row(caller.name,
                {human_count(caller.calls), human_count(caller.ioctls), human_time(caller.time)});
  }
  add(page, callers);
}

void add_errors(Page& page, const std::vector<Stats::Errors>& all) {
  Table table("errors", {{"error", 0, true}, {"count"}});
  std::vector<FailedCalls> failed;
  std::size_t shown = 0;
  for (const Stats::Errors& one : all) {
    failed.push_back({one.name, one.error, one.count});
    if (!is_usual(one.name, one.error) && shown++ < MAX_ERRORS)
      table.row(one.name, {one.error, human_count(one.count)});
  }
  add(page, table);
  std::vector<std::string> usual = usual_failures(failed);
  if (!usual.empty()) page.blank();
  for (const std::string& sentence : usual) page.paragraph(sentence, 0);
}

void add_gpu_errors(Page& page, const std::vector<Stats::Xid>& all) {
  Table table("GPU errors", {{"count"}});
  for (const Stats::Xid& xid : all)
    table.row(fmt::format("Xid {} on {}", xid.number, xid.device), {human_count(xid.count)});
  add(page, table);
  for (const Stats::Xid& xid : all)
    if (!xid.meaning.empty()) page.paragraph(fmt::format("{}: {}", xid.number, xid.meaning), 4);
}

std::string_view why_no_calls(const Stats& stats, const Totals& totals) {
  if (stats.libraries) return "No traced process called a traced function of libcuda.";
  if (!stats.inside) return "No libcuda was found or loaded.";
  if (totals.losses[static_cast<std::size_t>(Loss::process_unrecorded)])
    return "No process that called cuInit could be recorded.";
  return "Nothing was recorded: no process called cuInit, where recording starts (a program that "
         "finds no libcuda never does), or the program is linked statically, clears its "
         "environment, or runs below another root (chroot), where the library that records is not.";
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
    page.line(fmt::format("  {} {}{}", with_commas(count), info(reason).name,
                          info(reason).degraded ? " (events are there, but poorer)" : ""));
    page.paragraph(info(reason).advice, 4);
  }
}

// A jq query that finds something.
std::string suggested_query(const Stats& stats) {
  if (std::any_of(stats.errors.begin(), stats.errors.end(),
                  [](const Stats::Errors& one) { return !is_usual(one.name, one.error); }))
    return "select(.error) | {ts, name, error}";
  std::uint64_t longest = 0;
  for (const Stats::Calls& calls : stats.calls) longest = std::max(longest, calls.durations.max());
  if (!longest) return "select(.type == \"process\") | {ts, op, pid, cmdline}";
  return fmt::format("select(.duration_us > {}) | {{ts, name, duration_us}}", longest / 2 / 1000);
}

void add_trace(Page& page, const Stats& stats, const TraceWritten& written) {
  if (written.path == "-" || written.path == NULL_DEVICE) return;
  begin(page, "trace");
  page.line(fmt::format(
      "  {}  {}{}, {}{}", written.path,
      written.files > 1 ? fmt::format("the last of {} files; in all: ", written.files) : "",
      human_bytes(written.bytes), count_of(written.lines, "line", "lines"),
      written.complete ? "" : "; its end could not be written"));
  std::string query = suggested_query(stats);
  std::string file = shell_word(written.path);
  begin(page, "next");
  if (written.files <= 1) page.line(fmt::format("  cudabpf summary {}", file));
  page.line(written.path.ends_with(".zst") ? fmt::format("  zstd -dc {} | jq -c '{}'", file, query)
                                           : fmt::format("  jq -c '{}' {}", query, file));
  page.line("  cudabpf schema    what every field means");
}

}  // namespace

std::string render_summary(const Stats& stats, const Totals& totals,
                           const std::optional<TraceWritten>& written, const Terminal& terminal) {
  Page page(terminal);
  const EventCounts& counts = totals.counts;
  page.heading(fmt::format(
      "{} of {} in {}{}", count_of(stats.count, "call", "calls"),
      count_of(stats.processes, "process", "processes"), human_time(totals.duration_ns),
      counts.unfinished ? fmt::format("; {} unfinished", with_commas(counts.unfinished)) : ""));
  if (!stats.count) page.paragraph(why_no_calls(stats, totals), 2);
  add_calls(page, stats.calls);
  add_memory(page, stats);
  add_transfers(page, stats.transfers);
  add_kernels(page, stats);
  add_gpus(page, stats.gpus, MAX_GPUS);
  add_residence(page, stats.gpus, MAX_GPUS, stats.switches_why_not);
  add_driver(page, stats);
  add_errors(page, stats.errors);
  add_gpu_errors(page, stats.xids);
  if (counts.read_faults) {
    begin(page, "not readable");
    page.paragraph(
        fmt::format("{} with pointers to what could not be read: \"read_fault\" marks them",
                    count_of(counts.read_faults, "event", "events")),
        2);
  }
  page.say_left_out(false);
  add_losses(page, totals, written ? *written : TraceWritten());
  if (written) add_trace(page, stats, *written);
  return page.take();
}

}  // namespace cudabpf
