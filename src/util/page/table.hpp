// A table for people, as wide as its contents. If the page is narrower, it leaves out the columns
// that matter least.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "util/page/page.hpp"

namespace cudabpf {

class Table {
 public:
  struct Column {
    std::string_view name;
    // Columns with the highest number are left out first, all of them together; 0: it stays.
    unsigned spare = 0;
    bool text = false;  // aligned to the left
  };

  // Columns are left out before names get less room than `name_room`, or than half of the page.
  Table(std::string title, std::vector<Column> columns, std::size_t name_room = 26)
      : title_(std::move(title)), columns_(std::move(columns)), name_room_(name_room) {}

  // As many cells as there are columns. A column whose cells are all empty is not shown.
  void row(std::string name, std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // After an empty line, unless the page begins with it.
  void add_to(Page& page) const;

 private:
  struct Row {
    std::string name;
    std::vector<std::string> cells;
  };

  struct Layout {
    std::vector<std::size_t> columns;
    std::size_t names;
  };
  Layout layout(Page& page) const;

  std::string title_;
  std::vector<Column> columns_;
  std::size_t name_room_;
  std::vector<Row> rows_;
};

// Adds a row for each of the first items and one for all others together. Items have a name and can
// be added up. If only one is left over, its own row takes the place of the line for the others.
template <typename Item, typename Cells>
void add_rows(Table& table, const std::vector<Item>& items, std::size_t at_most,
              std::string_view plural, Cells cells_of) {
  std::size_t shown = items.size() <= at_most + 1 ? items.size() : at_most;
  for (std::size_t i = 0; i < shown; i++) table.row(items[i].name, cells_of(items[i]));
  if (shown == items.size()) return;
  Item rest;
  for (std::size_t i = shown; i < items.size(); i++) rest.add(items[i]);
  table.row(fmt::format("{} more {}", with_commas(items.size() - shown), plural), cells_of(rest));
}

}  // namespace cudabpf
