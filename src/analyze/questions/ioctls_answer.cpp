// The answer about the requests of a trace's programs to the driver.
#include <fmt/format.h>

#include "analyze/columns.hpp"
#include "analyze/questions/ioctls.hpp"

namespace cudabpf::analyze {

namespace {

using Figures = Ioctls::Figures;

constexpr auto DURATIONS = &Figures::durations;

constexpr Column<Figures> IOCTL_COLUMNS[] = {
    {{"name"}, As::text, its<&Figures::name>, {1, "name", WIDE}},
    {{"count", "count"}, As::count, its<&Figures::count>, {2, "operations"}},
    {{"ioctls"}, As::count, its<&Figures::ioctls>, {3, "ioctls"}},
    {{"failed"}, As::figure, its<&Figures::failed>, {7, "failed"}},
    {{"timed"}, As::count, its<DURATIONS, number_of>},
    {{"total_us", "total"}, As::timed, its<DURATIONS, total_of>, {4, "total", BAR}},
    {{"mean_us", "mean", 4}, As::timed, its<DURATIONS, mean_of>},
    {{"p50_us", "p50", 1}, As::timed, its<DURATIONS, p50_of>, {5, "p50"}},
    {{"p99_us", "p99", 3}, As::timed, its<DURATIONS, p99_of>},
    {{"max_us", "max", 2}, As::timed, its<DURATIONS, max_of>, {6, "longest"}},
    {{nullptr, "failed"}, As::figure, its<&Figures::failed>},
};

// By the requesting function. JSON has them after the others.
constexpr Column<Figures> ASKING_COLUMNS[] = {
    {{"calls", "calls"}, As::figure, its<&Figures::of_calls>},
    {{"issuing_calls", "that asked"}, As::figure, its<&Figures::calls>},
    {{"call_time_us", "call time", 2}, As::time, its<&Figures::call_time, shown_if_any>},
    {{nullptr, "ioctls"}, As::count, its<&Figures::ioctls>},
    {{nullptr, "other", 4}, As::figure, [](auto& of) { return of.count - of.ioctls; }},
    {{nullptr, "in driver"}, As::time, its<DURATIONS, &Durations::total>},
    {{nullptr, "p50", 3}, As::time, its<DURATIONS, p50_of>},
    {{nullptr, "p99", 5}, As::time, its<DURATIONS, p99_of>},
    {{nullptr, "max", 1}, As::time, its<DURATIONS, max_of>},
    {{nullptr, "failed"}, As::figure, its<&Figures::failed>},
};

template <typename Columns>
void add_section(Page& page, std::string title, const std::vector<Figures>& all,
                 std::size_t at_most, std::string_view plural, const Columns& columns,
                 std::size_t name_room = 26) {
  if (all.empty()) return;
  Table table = table_of(std::move(title), columns, name_room);
  add_rows(table, all, at_most, plural, cells_in(columns, page));
  table.add_to(page);
}

void add_section(Page& page, std::string title, const std::vector<Figures>& all,
                 std::size_t at_most, std::string_view plural) {
  constexpr std::size_t NAME_ROOM = 36;  // commands have long names
  add_section(page, std::move(title), all, at_most, plural, IOCTL_COLUMNS, NAME_ROOM);
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
  auto list = [](const std::vector<Figures>& all) { return list_of(all, IOCTL_COLUMNS); };
  Json json = {{"driver_traced", answer.traced},  {"operations", list(answer.operations)},
               {"groups", list(answer.groups)},   {"commands", list(answer.commands)},
               {"calls", list(answer.calls)},     {"outside_of_calls", list(answer.outside)},
               {"devices", list(answer.devices)}, {"processes", list(answer.processes)}};
  json["not_kept_apart"] = {{"of_kinds", answer.not_kept_apart.kinds},
                            {"of_processes", answer.not_kept_apart.processes},
                            {"of_functions", answer.not_kept_apart.functions}};
  for (std::size_t i = 0; i < answer.calls.size(); i++)
    json["calls"][i].update(json_of(answer.calls[i], ASKING_COLUMNS));
  return json;
}

Json ioctls_columns() { return page_columns(IOCTL_COLUMNS); }

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
    add_section(page, "for CUDA calls", answer.calls, at_most, "functions", ASKING_COLUMNS);
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
