#include "sink/top_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "util/page/table.hpp"
#include "util/text/json.hpp"

namespace cudabpf {

namespace {

// A machine may run any number of processes; a line of JSON must fit where it is handed over.
constexpr std::size_t MOST_ROWS = 20, MOST_IN_JSON = 64;

double seconds_of(const TopInterval& interval) {
  return std::max(1e-9, static_cast<double>(interval.end_ns - interval.begin_ns) / 1e9);
}

std::string rate(std::uint64_t count, double over) {
  return count ? human_count(
                     static_cast<std::uint64_t>(std::llround(static_cast<double>(count) / over)))
               : std::string("0");
}

std::string part(std::uint64_t ns, double over) {
  return fmt::format("{:.1f}%", static_cast<double>(ns) / 1e7 / over);
}

bool is_to_gpu(Op op) { return op == Op::HtoD || op == Op::HtoA; }
bool is_from_gpu(Op op) { return op == Op::DtoH || op == Op::AtoH; }

std::string copied(const TopFigures& figures, bool (*is_meant)(Op), double over) {
  std::uint64_t bytes = 0, count = 0;
  for (const auto& [op, copies] : figures.copies)
    if (is_meant(op)) {
      bytes += copies.bytes;
      count += copies.count;
    }
  if (!count) return {};
  return human_bytes(static_cast<std::uint64_t>(static_cast<double>(bytes) / over)) + "/s";
}

std::vector<std::string> top_cells(const TopProcess& process, double over) {
  const TopFigures& figures = process.figures;
  std::string place = !process.pod.empty() ? "pod " + process.pod : process.container.substr(0, 12);
  return {rate(figures.calls, over),
          rate(figures.launches, over),
          part(figures.time_ns, over),
          part(figures.waiting_ns, over),
          process.held || process.most_held ? human_bytes(process.held) : "",
          process.most_held ? human_bytes(process.most_held) : "",
          copied(figures, is_to_gpu, over),
          copied(figures, is_from_gpu, over),
          figures.driver_calls ? rate(figures.driver_calls, over) : "",
          figures.failed ? with_commas(figures.failed) : "",
          place};
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
  std::size_t shown = std::min(interval.processes.size(), MOST_ROWS);
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

std::string json_figures(const TopFigures& figures) {
  std::string copies;
  for (const auto& [op, moved] : figures.copies)
    copies += fmt::format("{}{}:{{\"count\":{},\"bytes\":{}}}", copies.empty() ? "" : ",",
                          json::quoted(to_string(op)), moved.count, moved.bytes);
  return fmt::format(
      "\"calls\":{},\"launches\":{},\"failed\":{},\"time_ns\":{},\"waiting_ns\":{},\"ioctls\":{},"
      "\"copies\":{{{}}}",
      figures.calls, figures.launches, figures.failed, figures.time_ns, figures.waiting_ns,
      figures.driver_calls, copies);
}

std::string json_process(const TopProcess& process) {
  return fmt::format(
      "{{\"pid\":{},\"name\":{},\"container\":{},\"pod\":{},\"ended\":{},{},\"held\":{},"
      "\"peak\":{}}}",
      process.pid, json::quoted(process.name), json::quoted(process.container),
      json::quoted(process.pod), process.ended, json_figures(process.figures), process.held,
      process.most_held);
}

std::string json_gpus(const GpusFigures& gpus) {
  std::string text;
  for (const auto& [device, figures] : gpus.gpus()) {
    text += fmt::format("{}{{\"device\":{}", text.empty() ? "" : ",", device);
    auto add = [&](std::string_view key, std::optional<double> value) {
      if (value) text += fmt::format(",\"{}\":{:.1f}", key, *value);
    };
    add("sm_active", figures.sm_active.mean());
    add("utilization", figures.utilization.mean());
    add("power_w", figures.power.mean());
    add("memory_used", figures.most_memory);
    text += '}';
  }
  return text;
}

std::string books_text(const TopInterval::Books& books) {
  auto counted = [](std::uint64_t count) { return with_commas(count); };
  const auto& [records, tallied] = books;
  std::string text;
  if (tallied.begun)
    text = fmt::format("calls counted: {} begun = {} ended + {} under way + {} dropped; ",
                       counted(tallied.begun), counted(tallied.ended), counted(tallied.under_way),
                       counted(tallied.dropped));
  return text + fmt::format("records: {} entered = {} emitted + {} dropped, {} received",
                            counted(records.entered), counted(records.emitted),
                            counted(records.dropped), counted(records.received));
}

std::string json_books(const TopInterval::Books& books) {
  const auto& [records, tallied] = books;
  return fmt::format(
      ",\"accounts\":{{\"entered\":{},\"emitted\":{},\"dropped\":{},\"received\":{}}},"
      "\"tallied\":{{\"begun\":{},\"ended\":{},\"under_way\":{},\"dropped\":{}}}",
      records.entered, records.emitted, records.dropped, records.received, tallied.begun,
      tallied.ended, tallied.under_way, tallied.dropped);
}

}  // namespace

std::string top_page(const TopInterval& interval, const Terminal& terminal) {
  constexpr unsigned WIDEST = 160;
  Page page(terminal, WIDEST);
  double over = seconds_of(interval);
  page.line(fmt::format(
      "{}  {} calls/s  {} launches/s  {}{}", clock_time(interval.end_ns),
      rate(interval.all.calls, over), rate(interval.all.launches, over),
      count_of(interval.processes.size(), "process", "processes"),
      interval.lost || interval.lost_uncounted
          ? fmt::format("  LOST {}", interval.lost_uncounted ? std::string("an unknown number")
                                                             : with_commas(interval.lost))
          : ""));
  add_process_rows(page, interval);
  add_gpus(page, interval.gpus, MOST_ROWS);
  if (!interval.errors.empty()) page.line("last errors");
  for (const TopError& error : interval.errors)
    page.line(fmt::format("  {}{}  {}", clock_time(error.ts),
                          error.pid ? fmt::format("  pid {}", error.pid) : "", error.what));
  if (interval.books) page.paragraph(books_text(*interval.books), 0);
  page.say_left_out();
  page.blank();
  return page.take();
}

std::string top_json(const TopInterval& interval) {
  std::string processes;
  std::size_t shown = std::min(interval.processes.size(), MOST_IN_JSON);
  for (std::size_t i = 0; i < shown; i++)
    processes += (i ? "," : "") + json_process(interval.processes[i]);
  std::string errors;
  for (const TopError& error : interval.errors)
    errors += fmt::format("{}{{\"ts\":{},\"pid\":{},\"what\":{}}}", errors.empty() ? "" : ",",
                          error.ts, error.pid, json::quoted(error.what));
  return fmt::format(
      "{{\"begin_ns\":{},\"end_ns\":{},{},\"lost\":{},\"lost_uncounted\":{},\"processes\":[{}],"
      "\"more_processes\":{},\"gpus\":[{}],\"errors\":[{}]{}}}\n",
      interval.begin_ns, interval.end_ns, json_figures(interval.all), interval.lost,
      interval.lost_uncounted, processes, interval.processes.size() - shown,
      json_gpus(interval.gpus), errors, interval.books ? json_books(*interval.books) : "");
}

}  // namespace cudabpf
