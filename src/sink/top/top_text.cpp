#include "sink/top/top_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sink/top/top_figures.hpp"
#include "util/page/table.hpp"

namespace cudabpf {

namespace {

// A machine may run any number of processes.
constexpr std::size_t MAX_ROWS = 20;
constexpr unsigned WIDEST = 160;

std::string rate(std::uint64_t count, double over) {
  return count ? human_count(
                     static_cast<std::uint64_t>(std::llround(static_cast<double>(count) / over)))
               : std::string("0");
}

std::string part(std::uint64_t ns, double over) {
  return fmt::format("{:.1f}%", static_cast<double>(ns) / 1e7 / over);
}

std::string copied(const CopiedBytes& copies, double over) {
  if (!copies.count) return {};
  return human_rate(static_cast<double>(copies.bytes) / over);
}

std::vector<std::string> top_cells(const TopProcess& process, double over) {
  const TopFigures& figures = process.figures;
  return {rate(figures.calls, over),
          rate(figures.launches, over),
          part(figures.time_ns, over),
          part(figures.waiting_ns, over),
          held_text(process, process.held),
          held_text(process, process.most_held),
          copied(copied_to_gpu(figures), over),
          copied(copied_from_gpu(figures), over),
          figures.driver_calls ? rate(figures.driver_calls, over) : "",
          figures.failed ? with_commas(figures.failed) : "",
          place_of(process)};
}

std::string lost_text(std::string_view before, const TopLosses& lost) {
  if (!lost.any()) return {};
  if (!lost.events) return fmt::format("{}LOST an unknown number", before);
  return fmt::format("{}LOST {}{}", before, with_commas(lost.events),
                     lost.uncounted ? " and more" : "");
}

void add_advice(Page& page, const std::bitset<LOSS_COUNT>& why) {
  for (std::size_t i = 0; i < LOSS_COUNT; i++)
    if (why.test(i)) {
      const LossInfo& loss = info(static_cast<Loss>(i));
      page.paragraph(fmt::format("lost by {}: {}", loss.name, loss.advice), 0);
    }
}

void add_process_rows(Page& page, const TopInterval& interval) {
  double over = seconds_of(interval);
  Table table("process", {{"calls/s", 0},
                          {"launches/s", 0},
                          {"in CUDA", 0},
                          {"waiting", 1},
                          {"held", 1},
                          {"peak", 3},
                          {"to GPU", 2},
                          {"from GPU", 2},
                          {"ioctls/s", 4},
                          {"errors", 1},
                          {"where", 5, true}});
  std::size_t shown = std::min(interval.processes.size(), MAX_ROWS);
  for (std::size_t i = 0; i < shown; i++) {
    const TopProcess& process = interval.processes[i];
    std::string name = process.pid ? fmt::format("{} {}", process.pid, process.name) : process.name;
    table.row(name + (process.ended ? " (ended)" : ""), top_cells(process, over));
  }
  if (table.empty()) return page.line("no process has called CUDA yet");
  table.add_to(page);
  if (std::size_t more = interval.processes.size() - shown)
    page.line(fmt::format("{} more", count_of(more, "process", "processes")));
}

std::string books_text(const TopInterval::Books& books) {
  auto counted = [](std::uint64_t count) { return with_commas(count); };
  const auto& [records, tallied] = books;
  std::string text;
  if (tallied.begun)
    text = fmt::format("calls counted: {} begun = {} ended + {} under way + {} dropped; ",
                       counted(tallied.begun), counted(tallied.ended), counted(tallied.under_way),
                       counted(tallied.dropped));
  return "The books do not balance, which is a bug in cudabpf; please report it: " + text +
         fmt::format("records: {} entered = {} emitted + {} dropped, {} received",
                     counted(records.entered), counted(records.emitted), counted(records.dropped),
                     counted(records.received));
}

void add_books(Page& page, const TopInterval& last) {
  if (last.books && !last.books->balance()) page.paragraph(books_text(*last.books), 0);
}

std::string error_text(const TopError& error) {
  std::string text = clock_time(error.ts) + "  ";
  if (error.pid)
    text += fmt::format("{}{}{}  ", error.pid, error.name.empty() ? "" : " ", error.name);
  if (error.count > 1) text += with_commas(error.count) + " times ";
  return text + error.what;
}

}  // namespace

std::string TopText::text(const TopInterval& interval, const Terminal& terminal) {
  Page page(terminal, WIDEST);
  double over = seconds_of(interval);
  page.line(fmt::format("{}  {} calls/s  {} launches/s  {}{}", clock_time(interval.end_ns),
                        rate(interval.all.calls, over), rate(interval.all.launches, over),
                        count_of(interval.processes.size(), "process", "processes"),
                        lost_text("  ", interval.lost)));
  add_advice(page, interval.lost.why & ~advised_);
  advised_ |= interval.lost.why;
  add_process_rows(page, interval);
  add_gpus(page, interval.gpus, MAX_ROWS);
  if (!interval.errors.empty()) page.line("last errors");
  for (const TopError& error : interval.errors) page.line("  " + error_text(error));
  add_books(page, interval);
  if (!said_left_out_) said_left_out_ = page.say_left_out();
  page.blank();
  return page.take();
}

std::string top_end_text(const TopInterval& last, const TopLosses& lost, const Terminal& terminal) {
  Page page(terminal, WIDEST);
  if (lost.any()) page.line(lost_text("", lost));
  add_advice(page, lost.why);
  add_books(page, last);
  return page.take();
}

}  // namespace cudabpf
