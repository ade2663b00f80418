#include "sink/top/top_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sink/top/top_figures.hpp"
#include "util/console/terminal.hpp"
#include "util/text/printable.hpp"

namespace cudabpf {

namespace {

using Id = TopColumn::Id;

struct PlacedColumn {
  const TopColumn* column = nullptr;
  std::size_t at = 0, width = 0;
};

bool is_text(const TopColumn& column) { return !column.number; }

bool has_something(const TopColumn& column, const TopInterval& interval) {
  if (column.id == Id::ioctls) return interval.driver_traced;
  if (column.id != Id::where) return true;
  return std::any_of(interval.processes.begin(), interval.processes.end(),
                     [](const TopProcess& one) { return !place_of(one).empty(); });
}

// The columns that there is room for, the most important first; the name gets the rest.
std::vector<PlacedColumn> placed_columns(const TopScene& scene, const TopView& view,
                                         std::size_t width) {
  std::vector<const TopColumn*> wanted;
  for (const TopColumn& column : top_columns())
    if (view.shows(column.id) && has_something(column, scene.interval)) wanted.push_back(&column);
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const TopColumn* a, const TopColumn* b) { return a->spare < b->spare; });
  std::size_t left = width + 1;
  std::vector<PlacedColumn> columns;
  for (const TopColumn* column : wanted)
    if (column->width < left) {
      left -= column->width + 1;
      columns.push_back({column, 0, column->width});
    }
  std::sort(columns.begin(), columns.end(), [](const PlacedColumn& a, const PlacedColumn& b) {
    return a.column->id < b.column->id;
  });
  std::size_t at = 0;
  for (PlacedColumn& column : columns) {
    if (column.column->id == Id::name) column.width += left;
    column.at = at;
    at += column.width + 1;
  }
  return columns;
}

void write_cell(ScreenFrame& frame, std::size_t row, const PlacedColumn& column,
                std::string_view text, Style style) {
  if (is_text(*column.column))
    frame.write(row, column.at, text, style, column.width);
  else
    frame.write_right(row, column.at, column.width, text, style);
}

void draw_titles(ScreenFrame& frame, std::size_t row, const TopView& view,
                 const std::vector<PlacedColumn>& columns) {
  frame.paint(row, TITLE_STYLE);
  for (const PlacedColumn& column : columns) {
    std::string title(column.column->title);
    Style style = TITLE_STYLE;
    if (column.column->id == view.sorted_by()) {
      bool ascends = is_text(*column.column) || column.column->id == Id::pid;
      bool is_down = ascends == view.inverted();
      title += is_down ? (frame.utf8() ? "▼" : "v") : (frame.utf8() ? "▲" : "^");
      style = {Colour::none, true, true};
    }
    write_cell(frame, row, column, title, style);
  }
}

Style style_of(const TopColumn& column, const TopProcess& process, bool selected) {
  if (selected) return {Colour::none, false, true};
  if (process.ended) return {Colour::grey};
  if (column.id == Id::errors) return {Colour::red, true};
  if (column.id == Id::name) return {Colour::none, true};
  return {};
}

void draw_process(ScreenFrame& frame, std::size_t row, const TopProcess& process, double seconds,
                  const std::vector<PlacedColumn>& columns, bool selected) {
  for (const PlacedColumn& column : columns)
    write_cell(frame, row, column, column.column->cell(process, seconds),
               style_of(*column.column, process, selected));
  if (selected) frame.paint(row, {Colour::none, false, true});
}

void draw_device(ScreenFrame& frame, std::size_t row, const TopLine& line,
                 const std::vector<PlacedColumn>& columns) {
  const RunMemory::OfDevice& memory = line.process->devices.at(*line.device);
  std::string name = *line.device == RunMemory::NO_DEVICE ? std::string("device not known")
                                                          : fmt::format("GPU {}", *line.device);
  for (const PlacedColumn& column : columns) switch (column.column->id) {
      case Id::name:
        write_cell(frame, row, column, (frame.utf8() ? "└ " : "` ") + name, {Colour::cyan});
        break;
      case Id::held:
        write_cell(frame, row, column, human_bytes(memory.held), {Colour::cyan});
        break;
      case Id::peak:
        write_cell(frame, row, column, human_bytes(memory.peak), {Colour::cyan});
        break;
      default:
        break;
    }
}

// --- functions and kernels

struct PartColumn {
  std::string_view title;
  std::size_t width;
  std::string (*cell)(const TopPart& part, double seconds);
};

constexpr PartColumn OF_FUNCTIONS[] = {
    {"CALLS/S", 8, [](const TopPart& part, double over) { return rate_text(part.calls, over); }},
    {"CUDA%", 6, [](const TopPart& part, double over) { return percent_text(part.time_ns, over); }},
    {"ERRORS", 7,
     [](const TopPart& part, double) { return part.failed ? brief_count(part.failed) : ""; }},
};
constexpr PartColumn OF_KERNELS[] = {
    {"LAUNCH/S", 9, [](const TopPart& part, double over) { return rate_text(part.calls, over); }},
};

struct Area {
  std::size_t row, rows, column, columns;
};

// The longest title that there is room for is used.
std::vector<std::string> parts_titles(const TopProcess& process) {
  std::string title =
      fmt::format("functions of {}", process.pid ? std::to_string(process.pid) : process.name);
  return {title + "  " + place_of(process), title, "functions"};
}

void draw_list(ScreenFrame& frame, const Area& area, const std::vector<std::string>& titles,
               const std::vector<TopPart>& parts, std::span<const PartColumn> columns,
               double seconds) {
  std::size_t name_room = area.columns;
  for (const PartColumn& column : columns) name_room -= column.width + 1;
  for (std::size_t i = 0; i < area.columns; i++)
    frame.write(area.row, area.column + i, " ", TITLE_STYLE);
  auto title = std::find_if(titles.begin(), titles.end() - 1,
                            [&](const std::string& one) { return width_of(one) <= name_room; });
  frame.write(area.row, area.column, *title, TITLE_STYLE, name_room);
  std::size_t shown = std::min(parts.size(), area.rows - 1);
  for (std::size_t i = 0; i < shown; i++)
    frame.write(area.row + 1 + i, area.column, parts[i].name, {}, name_room);
  std::size_t at = area.column + name_room + 1;
  for (const PartColumn& column : columns) {
    frame.write_right(area.row, at, column.width, column.title, TITLE_STYLE);
    for (std::size_t i = 0; i < shown; i++)
      frame.write_right(area.row + 1 + i, at, column.width, column.cell(parts[i], seconds));
    at += column.width + 1;
  }
}

}  // namespace

void draw_processes(ScreenFrame& frame, const TopScene& scene, const TopView& view,
                    const TopLines& lines, Rows rows) {
  if (!rows.count) return;
  auto columns = placed_columns(scene, view, frame.size().columns);
  draw_titles(frame, rows.at, view, columns);
  std::size_t room = rows.count - 1;
  if (lines.lines.empty() && room) {
    bool any = !scene.interval.processes.empty();
    frame.write(
        rows.at + 1, 0,
        any ? "no process has this in its pid, name or place" : "no process has called CUDA yet");
  }
  double seconds = seconds_of(scene.interval);
  // The selected one is always shown.
  std::size_t first = lines.selected < room ? 0 : lines.selected + 1 - room;
  for (std::size_t i = 0; i < room && first + i < lines.lines.size(); i++) {
    const TopLine& line = lines.lines[first + i];
    if (line.device)
      draw_device(frame, rows.at + 1 + i, line, columns);
    else
      draw_process(frame, rows.at + 1 + i, *line.process, seconds, columns,
                   first + i == lines.selected);
  }
}

void draw_parts(ScreenFrame& frame, const TopScene& scene, const TopLines& lines, Rows rows) {
  constexpr std::size_t ROOM_FOR_TWO = 76;
  if (!rows.count || lines.lines.empty()) return;
  const TopProcess& process = *lines.lines[lines.selected].process;
  double seconds = seconds_of(scene.interval);
  Area functions{rows.at, rows.count, 0, frame.size().columns};
  if (!process.has_kernels)
    return draw_list(frame, functions, parts_titles(process), process.functions, OF_FUNCTIONS,
                     seconds);
  Area kernels = functions;
  if (frame.size().columns >= ROOM_FOR_TWO) {
    functions.columns = frame.size().columns / 2;
    kernels.column = functions.columns + 1;
    kernels.columns -= kernels.column;
  } else {
    functions.rows -= rows.count / 2;
    kernels.row += functions.rows;
    kernels.rows -= functions.rows;
  }
  draw_list(frame, functions, parts_titles(process), process.functions, OF_FUNCTIONS, seconds);
  draw_list(frame, kernels, {"kernels"}, process.kernels, OF_KERNELS, seconds);
}

}  // namespace cudabpf
