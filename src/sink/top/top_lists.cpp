#include "sink/top/top_lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sink/top/top_table.hpp"

namespace cudabpf {

namespace {

struct KeyHelp {
  std::string_view keys, does;
};
constexpr KeyHelp KEYS[] = {
    {"q, F10", "quit; a command that top started runs on"},
    {"arrows, j, k", "select a process; its functions are below"},
    {"Enter, +", "show a process's memory by GPU, or hide it"},
    {"F6, <, >", "sort by a column"},
    {"I, R", "reverse the order"},
    {"F4, \\", "show only rows with a text in name, pid or place"},
    {"F3, /", "search; F3 again: the next one"},
    {"Space, p, z", "pause, and go on"},
    {"F2, C", "choose columns"},
    {"g", "show as many GPUs as there is room for, or only some"},
    {"PgUp, PgDn", "select a page up or down"},
    {"Home, End", "select the first or the last one"},
    {"w", "write the last events as a trace (--keep-last)"},
    {"Ctrl-L", "draw all of it again"},
};
constexpr std::string_view NOTES[] = {
    "CUDA% adds up all threads: 250 is two and a half threads.",
    "A call that takes longer than an interval counts where it returns.",
    "A GPU's bars are full at its power limit, and at all its memory.",
    "HELD leaves out what a process allocated before top started.",
    "Graphs are of the last minute.",
};

}  // namespace

void draw_help(ScreenFrame& frame, Rows rows) {
  constexpr std::size_t KEYS_WIDTH = 14;
  std::size_t row = rows.at, end = rows.at + rows.count;
  auto next = [&](auto write) {
    if (row < end) write(row++);
  };
  next([&](std::size_t at) {
    frame.paint(at, TITLE_STYLE);
    frame.write(at, 0, "keys; any of them closes this", TITLE_STYLE);
  });
  for (const KeyHelp& key : KEYS)
    next([&](std::size_t at) {
      frame.write(at, 0, key.keys, {Colour::cyan, true});
      frame.write(at, KEYS_WIDTH, key.does);
    });
  row++;
  for (std::string_view note : NOTES) next([&](std::size_t at) { frame.write(at, 0, note); });
}

void draw_columns(ScreenFrame& frame, const TopView& view, Rows rows) {
  constexpr std::size_t TITLES_WIDTH = 16;
  bool sorting = view.mode() == TopView::Mode::sort;
  frame.paint(rows.at, TITLE_STYLE);
  frame.write(
      rows.at, 0,
      sorting ? "sort by (Enter selects, Esc cancels)" : "columns (Space shows or hides, Esc ends)",
      TITLE_STYLE);
  auto columns = top_columns();
  std::size_t room = rows.count - 1;
  std::size_t first = view.chosen() < room ? 0 : view.chosen() + 1 - room;
  for (std::size_t i = 0; i < room && first + i < columns.size(); i++) {
    const TopColumn& column = columns[first + i];
    std::size_t row = rows.at + 1 + i;
    std::string_view mark = sorting ? (column.id == view.sorted_by() ? "> " : "  ")
                                    : (view.shows(column.id) ? "[x] " : "[ ] ");
    std::size_t at = frame.write(row, 0, mark);
    frame.write(row, at, column.title, {Colour::none, true});
    frame.write(row, TITLES_WIDTH, column.meaning);
    if (first + i == view.chosen()) frame.paint(row, {Colour::none, false, true});
  }
}

}  // namespace cudabpf
