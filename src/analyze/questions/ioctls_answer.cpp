// The answer about what a trace's programs asked the driver for.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analyze/questions/ioctls.hpp"
#include "util/page/table.hpp"

namespace cudabpf::analyze {

namespace {

using Figures = Ioctls::Figures;

Json figures_json(const Figures& figures) {
  const Durations& times = figures.durations;
  Json json = {{"name", figures.name},     {"count", figures.count},
               {"ioctls", figures.ioctls}, {"failed", figures.failed},
               {"timed", times.count()},   {"total_us", microseconds(times.total())}};
  if (times.count()) {
    json["mean_us"] = microseconds(times.mean());
    json["p50_us"] = microseconds(times.quantile(0.5));
    json["p99_us"] = microseconds(times.quantile(0.99));
    json["max_us"] = microseconds(times.max());
  }
  return json;
}

std::vector<std::string> ioctl_cells(const Figures& figures) {
  const Durations& times = figures.durations;
  auto time = [&](std::uint64_t ns) { return times.count() ? human_time(ns) : std::string("-"); };
  return {human_count(figures.count),     time(times.total()),        time(times.mean()),
          time(times.quantile(0.5)),      time(times.quantile(0.99)), time(times.max()),
          figure_or_blank(figures.failed)};
}

void add_section(Page& page, std::string title, const std::vector<Figures>& all,
                 std::size_t at_most, std::string_view plural) {
  if (all.empty()) return;
  constexpr std::size_t NAME_ROOM = 36;  // commands have long names
  Table table(std::move(title),
              {{"count"}, {"total"}, {"mean", 4}, {"p50", 1}, {"p99", 3}, {"max", 2}, {"failed"}},
              NAME_ROOM);
  add_rows(table, all, at_most, plural, ioctl_cells);
  table.add_to(page);
}

void add_calls(Page& page, const std::vector<Figures>& all, std::size_t at_most) {
  if (all.empty()) return;
  Table table("for CUDA calls", {{"calls"},
                                 {"that asked"},
                                 {"call time", 2},
                                 {"ioctls"},
                                 {"other", 4},
                                 {"in driver"},
                                 {"p50", 3},
                                 {"p99", 5},
                                 {"max", 1},
                                 {"failed"}});
  add_rows(table, all, at_most, "functions", [](const Figures& of) -> std::vector<std::string> {
    const Durations& times = of.durations;
    return {figure_or_blank(of.of_calls),
            figure_or_blank(of.calls),
            of.call_time ? human_time(of.call_time) : "",
            human_count(of.ioctls),
            figure_or_blank(of.count - of.ioctls),
            human_time(times.total()),
            human_time(times.quantile(0.5)),
            human_time(times.quantile(0.99)),
            human_time(times.max()),
            figure_or_blank(of.failed)};
  });
  table.add_to(page);
}

// What is counted in a row of others, and in no other row.
void add_not_kept_apart(Page& page, const Ioctls::NotKeptApart& not_kept) {
  std::string parts;
  auto add = [&](std::uint64_t count, std::string_view what) {
    if (!count) return;
    parts += fmt::format("{}{} of {}", parts.empty() ? "" : ", ",
                         count_of(count, "operation", "operations"), what);
  };
  add(not_kept.kinds, "more kinds");
  add(not_kept.processes, "more processes");
  add(not_kept.functions, "more functions");
  if (!parts.empty())
    page.paragraph(fmt::format("Too many to be kept apart, and counted as (others): {}.", parts),
                   2);
}

bool has_operation(const Ioctls::Answer& answer, std::string_view prefix) {
  for (const Figures& of : answer.operations)
    if (of.name.starts_with(prefix)) return true;
  return false;
}

}  // namespace

Json ioctls_json(const Ioctls::Answer& answer) {
  auto list = [](const std::vector<Figures>& all) {
    Json json = Json::array();
    for (const Figures& figures : all) json.push_back(figures_json(figures));
    return json;
  };
  Json json = {{"driver_traced", answer.traced},  {"operations", list(answer.operations)},
               {"groups", list(answer.groups)},   {"commands", list(answer.commands)},
               {"calls", list(answer.calls)},     {"outside_of_calls", list(answer.outside)},
               {"devices", list(answer.devices)}, {"processes", list(answer.processes)}};
  json["not_kept_apart"] = {{"of_kinds", answer.not_kept_apart.kinds},
                            {"of_processes", answer.not_kept_apart.processes},
                            {"of_functions", answer.not_kept_apart.functions}};
  for (std::size_t i = 0; i < answer.calls.size(); i++) {
    json["calls"][i]["calls"] = answer.calls[i].of_calls;
    json["calls"][i]["calls_that_asked"] = answer.calls[i].calls;
    json["calls"][i]["call_time_us"] = microseconds(answer.calls[i].call_time);
  }
  return json;
}

void add_ioctls(Page& page, const Ioctls::Answer& answer, IoctlsBy by, std::size_t at_most) {
  if (answer.operations.empty()) {
    page.paragraph(answer.traced ? "No requests were made to the driver."
                                 : "No driver requests were recorded. Record with --kernel to "
                                   "see them.",
                   0);
    return;
  }
  auto wanted = [&](IoctlsBy section) { return by == section || by == IoctlsBy::everything; };
  if (by == IoctlsBy::everything)
    add_section(page, "on the driver's devices", answer.operations, at_most, "kinds");
  if (wanted(IoctlsBy::group))
    add_section(page, "ioctls by group", answer.groups, at_most, "groups");
  if (wanted(IoctlsBy::command))
    add_section(page, "ioctls by command", answer.commands, at_most, "commands");
  if (wanted(IoctlsBy::call)) {
    add_calls(page, answer.calls, at_most);
    add_section(page, "outside of any CUDA call", answer.outside, at_most, "processes");
  }
  if (by == IoctlsBy::device) add_section(page, "by device", answer.devices, at_most, "devices");
  if (by == IoctlsBy::process)
    add_section(page, "by process", answer.processes, at_most, "processes");

  page.blank();
  add_not_kept_apart(page, answer.not_kept_apart);
  if (has_operation(answer, "poll"))
    page.paragraph("A poll waits: its time is not the driver's work.", 2);
  if (answer.way == "syscall_tracepoints")
    page.paragraph(
        "The driver's functions were not probed, only system calls: page faults and "
        "interrupts are not in the trace.",
        2);
  page.paragraph(
      "A kernel launch makes no request unless it loads code first: it writes to memory that the "
      "GPU reads.",
      2);
}

}  // namespace cudabpf::analyze
