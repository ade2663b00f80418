#include "sink/top/top_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "sink/top/top_figures.hpp"
#include "sink/top/top_lists.hpp"
#include "sink/top/top_table.hpp"
#include "util/console/terminal.hpp"
#include "util/page/braille.hpp"
#include "util/text/printable.hpp"
#include "util/text/wrapped.hpp"

namespace cudabpf {

namespace {

// --- the head

struct Piece {
  std::string text;
  Style style;
  unsigned spare;  // those with the highest number are left out first
};

std::string lost_text(const TopLosses& lost) {
  if (!lost.events) return "LOST some";
  return fmt::format("LOST {}{}", brief_count(lost.events), lost.uncounted ? " and more" : "");
}

std::vector<Piece> head_pieces(const TopScene& scene, const TopView& view) {
  const TopInterval& interval = scene.interval;
  double seconds = seconds_of(interval);
  auto ended = static_cast<std::size_t>(
      std::count_if(interval.processes.begin(), interval.processes.end(),
                    [](const TopProcess& process) { return process.ended; }));
  std::string processes = count_of(interval.processes.size() - ended, "process", "processes");
  if (ended) processes += fmt::format(", {} ended", ended);
  std::vector<Piece> pieces = {
      {"cudabpf top", {Colour::none, true}, 5},
      {clock_time(interval.end_ns), {}, 2},
      {rate_text(interval.all.calls, seconds) + " calls/s", {Colour::none, true}, 1},
      {rate_text(interval.all.launches, seconds) + " launches/s", {Colour::none, true}, 3},
      {processes, {}, 4}};
  if (scene.lost.any()) pieces.push_back({lost_text(scene.lost), {Colour::red, true}, 0});
  if (!view.filter().empty()) pieces.push_back({"only " + view.filter(), {Colour::yellow}, 1});
  if (view.paused()) pieces.push_back({"PAUSED", {Colour::yellow, true, true}, 0});
  return pieces;
}

void draw_head(ScreenFrame& frame, const TopScene& scene, const TopView& view) {
  constexpr std::size_t GAP = 2;
  auto pieces = head_pieces(scene, view);
  auto width = [&] {
    std::size_t sum = 0;
    for (const Piece& piece : pieces) sum += width_of(piece.text) + GAP;
    return sum - GAP;
  };
  while (pieces.size() > 1 && width() > frame.size().columns) {
    auto most = std::max_element(pieces.begin(), pieces.end(),
                                 [](const Piece& a, const Piece& b) { return a.spare < b.spare; });
    if (!most->spare) break;
    pieces.erase(most);
  }
  std::size_t at = 0;
  for (const Piece& piece : pieces) at += frame.write(0, at, piece.text, piece.style) + GAP;
}

// --- history

struct Graph {
  TopHistory::Of of;
  Colour colour;
  std::string_view name;
  std::string (*text)(double value);
};

std::string whole_number(double value) {
  return brief_count(static_cast<std::uint64_t>(std::llround(value)));
}

constexpr Graph GRAPHS[] = {
    {TopHistory::Of::calls, Colour::green, "calls/s", whole_number},
    {TopHistory::Of::launches, Colour::cyan, "launches/s", whole_number},
    {TopHistory::Of::activity, Colour::yellow, "GPU activity",
     [](double value) { return fmt::format("{:.0f} %", value); }},
    {TopHistory::Of::held, Colour::magenta, "held",
     [](double value) { return human_bytes(static_cast<std::uint64_t>(value)); }},
};

void draw_graph(ScreenFrame& frame, const TopHistory& history, const Graph& graph, Rows rows,
                std::size_t column, std::size_t columns) {
  auto last = history.last(graph.of), most = history.most(graph.of);
  std::size_t at = frame.write(rows.at, column, graph.name, {}, columns) + 1;
  if (last)
    at += frame.write(rows.at, column + at, graph.text(*last), {graph.colour, true}, columns - at) +
          1;
  if (std::string text = most ? "most " + graph.text(*most) : ""; at + width_of(text) <= columns)
    frame.write_right(rows.at, column + at, columns - at, text, {Colour::grey});
  bool is_percent = graph.of == TopHistory::Of::activity;
  auto lines =
      braille_graph(history.parts(graph.of, 2 * columns), is_percent ? 100 : most.value_or(0),
                    rows.count - 1, columns, frame.utf8());
  for (std::size_t i = 0; i < lines.size(); i++)
    frame.write(rows.at + 1 + i, column, lines[i], {graph.colour});
}

void draw_graphs(ScreenFrame& frame, const TopHistory& history, Rows rows) {
  constexpr std::size_t LEAST_WIDTH = 18, GAP = 2;
  if (!rows.count) return;
  std::vector<const Graph*> graphs;
  for (const Graph& graph : GRAPHS)
    if (graph.of != TopHistory::Of::activity || history.most(graph.of)) graphs.push_back(&graph);
  std::size_t columns = frame.size().columns;
  graphs.resize(std::min(graphs.size(), (columns + GAP) / (LEAST_WIDTH + GAP)));
  std::size_t width = (columns + GAP) / graphs.size() - GAP;
  for (std::size_t i = 0; i < graphs.size(); i++)
    draw_graph(frame, history, *graphs[i], rows, i * (width + GAP), width);
}

// --- GPUs

struct Gauge {
  std::string_view label;
  std::string text;
  std::size_t text_width;
  Colour colour;
  std::optional<double> part;  // of its maximum; nothing: not known
  std::size_t width() const { return label.size() + 1 + text_width; }
};

std::optional<double> part_of(double value, double all) {
  return all > 0 ? std::optional(value / all) : std::nullopt;
}

std::vector<Gauge> gauges_of(const GpuFigures& figures, const TopGpu& gpu) {
  constexpr std::size_t ACTIVE = 5, POWER = 7, MEMORY = 8;  // "100 %", "1000 W", "80.0 GiB"
  std::vector<Gauge> gauges;
  if (auto active = activity_of(figures))
    gauges.push_back({figures.sm_active.mean() ? "SM" : "use", fmt::format("{:.0f} %", *active),
                      ACTIVE, Colour::green, *active / 100});
  if (auto memory = figures.most_memory) {
    std::string text = human_bytes(static_cast<std::uint64_t>(*memory));
    if (gpu.memory > 0) text += " of " + human_bytes(static_cast<std::uint64_t>(gpu.memory));
    gauges.push_back({"mem", text, gpu.memory > 0 ? 2 * MEMORY + 4 : MEMORY, Colour::magenta,
                      part_of(*memory, gpu.memory)});
  }
  if (auto power = figures.power.mean())
    gauges.push_back({"power", fmt::format("{:.0f} W", *power), POWER, Colour::yellow,
                      part_of(*power, gpu.power)});
  return gauges;
}

struct Place {
  std::size_t row, column, columns;
};

// The name takes what the gauges leave; the last gauges are left out first.
void draw_gpu(ScreenFrame& frame, Place place, std::uint32_t device, const GpuFigures& figures,
              const TopGpu& gpu) {
  constexpr std::size_t NAME = 6, GAP = 2, LEAST_BAR = 4, MAX_BAR = 20, AROUND = 3;  // " [", "]"
  auto gauges = gauges_of(figures, gpu);
  auto taken = [&](std::size_t bar) {
    std::size_t sum = NAME;
    for (const Gauge& gauge : gauges) sum += GAP + gauge.width() + (gauge.part ? bar + AROUND : 0);
    return sum;
  };
  while (!gauges.empty() && taken(LEAST_BAR) > place.columns) gauges.pop_back();
  std::size_t left = place.columns - std::min(place.columns, taken(LEAST_BAR));
  std::string name = fmt::format("GPU {}", device);
  std::size_t name_room = NAME;
  if (std::size_t more = width_of(gpu.name) + 1; !gpu.name.empty() && more <= left) {
    name += " " + gpu.name;
    name_room += more;
    left -= more;
  }
  auto bars = static_cast<std::size_t>(std::count_if(
      gauges.begin(), gauges.end(), [](const Gauge& gauge) { return gauge.part.has_value(); }));
  std::size_t bar_width = bars ? std::min(MAX_BAR, LEAST_BAR + left / bars) : 0;
  frame.write(place.row, place.column, name, {Colour::none, true}, name_room);
  std::size_t at = place.column + name_room;
  for (const Gauge& gauge : gauges) {
    at += GAP + frame.write(place.row, at + GAP, gauge.label, {Colour::grey});
    if (gauge.part) {
      at += frame.write(place.row, at, " [");
      frame.write(place.row, at, bar(*gauge.part, bar_width, frame.utf8()), {gauge.colour});
      at += bar_width;
      at += frame.write(place.row, at, "]");
    }
    frame.write_right(place.row, at + 1, gauge.text_width, gauge.text);
    at += 1 + gauge.text_width;
  }
}

void draw_gpus(ScreenFrame& frame, const TopScene& scene, Rows rows) {
  constexpr std::size_t GAP = 3;
  if (!rows.count) return;
  const auto& gpus = scene.interval.gpus.gpus();
  std::size_t columns = frame.size().columns, in_row = gpus_in_row(gpus.size(), columns);
  std::size_t width = (columns + GAP) / in_row - GAP;
  bool all = gpus.size() <= rows.count * in_row;
  std::size_t shown = all ? gpus.size() : (rows.count - 1) * in_row, i = 0;
  for (const auto& [device, figures] : gpus) {
    if (i == shown) break;
    auto known = scene.interval.sampled_gpus.find(device);
    draw_gpu(frame, {rows.at + i / in_row, i % in_row * (width + GAP), width}, device, figures,
             known == scene.interval.sampled_gpus.end() ? TopGpu() : known->second);
    i++;
  }
  if (!all)
    frame.write(rows.at + rows.count - 1, 0,
                fmt::format("{} more GPUs: g shows them", gpus.size() - shown));
}

// --- the rows below

std::string process_text(const TopError& error) {
  return error.name.empty() ? std::to_string(error.pid)
                            : fmt::format("{} {}", error.pid, error.name);
}

void draw_errors(ScreenFrame& frame, const TopScene& scene, Rows rows) {
  const auto& errors = scene.interval.errors;
  for (std::size_t i = 0; i < rows.count; i++) {
    const TopError& error = errors[errors.size() - rows.count + i];
    std::size_t at = frame.write(rows.at + i, 0, clock_time(error.ts), {Colour::red, true}) + 1;
    if (error.pid) at += frame.write(rows.at + i, at, process_text(error)) + 1;
    if (error.count > 1)
      at += frame.write(rows.at + i, at,
                        fmt::format("{} {}", brief_count(error.count), frame.utf8() ? "×" : "x"),
                        {Colour::red, true}) +
            1;
    frame.write(rows.at + i, at, error.what, {Colour::red});
  }
}

struct ShownKey {
  std::string_view key, does;
};
// The first ones are shown on any screen.
constexpr ShownKey SHOWN_KEYS[] = {{"F1", "Help"},     {"F3", "Search"},   {"F4", "Filter"},
                                   {"F6", "Sort"},     {"F10", "Quit"},    {"F2", "Columns"},
                                   {"Space", "Pause"}, {"Enter", "Expand"}};

void draw_keys(ScreenFrame& frame, const TopView& view) {
  std::size_t row = frame.size().rows - 1, at = 0;
  using Mode = TopView::Mode;
  if (view.mode() == Mode::filter || view.mode() == Mode::search) {
    bool searching = view.mode() == Mode::search;
    at = frame.write(row, 0, searching ? "Search: " : "Filter: ", {Colour::yellow, true});
    at += frame.write(row, at, searching ? view.search() : view.filter());
    frame.write(row, at, "_", {Colour::none, true});
    return;
  }
  for (const ShownKey& shown : SHOWN_KEYS) {
    if (at + shown.key.size() + shown.does.size() > frame.size().columns) return;
    at += frame.write(row, at, shown.key, {Colour::none, true});
    at += frame.write(row, at, shown.does, TITLE_STYLE) + 1;
  }
}

ScreenFrame too_small(ScreenFrame::Size size, bool utf8) {
  ScreenFrame frame(size, utf8);
  std::string text = fmt::format("cudabpf top: this terminal is too small; it needs {}x{}. q ends",
                                 LEAST_TOP.columns, LEAST_TOP.rows);
  std::size_t row = 0;
  if (size.columns)
    for (std::string_view line : wrapped(text, static_cast<unsigned>(size.columns)))
      frame.write(row++, 0, line);
  return frame;
}

bool is_too_small(ScreenFrame::Size size) {
  return size.rows < LEAST_TOP.rows || size.columns < LEAST_TOP.columns;
}

}  // namespace

ScreenFrame draw_top(const TopScene& scene, const TopView& view, ScreenFrame::Size size,
                     bool utf8) {
  if (is_too_small(size)) return too_small(size, utf8);
  ScreenFrame frame(size, utf8);
  TopLines lines = top_lines(scene.interval, view);
  TopLayout layout = top_layout(scene, view, lines.lines.size(), size);
  draw_head(frame, scene, view);
  draw_keys(frame, view);
  if (view.mode() == TopView::Mode::help) {
    draw_help(frame, {1, size.rows - 2});
    return frame;
  }
  draw_graphs(frame, scene.history, layout.graphs);
  draw_gpus(frame, scene, layout.gpus);
  draw_errors(frame, scene, layout.errors);
  if (layout.message.count) frame.write(layout.message.at, 0, scene.message, {Colour::yellow});
  if (view.mode() == TopView::Mode::sort || view.mode() == TopView::Mode::columns) {
    draw_columns(frame, view, {layout.table.at, layout.table.count + layout.parts.count});
    return frame;
  }
  draw_processes(frame, scene, view, lines, layout.table);
  draw_parts(frame, scene, lines, layout.parts);
  return frame;
}

std::size_t top_page_rows(const TopScene& scene, const TopView& view, ScreenFrame::Size size) {
  if (is_too_small(size)) return 1;
  return top_layout(scene, view, top_lines(scene.interval, view).lines.size(), size).table.count -
         1;
}

}  // namespace cudabpf
