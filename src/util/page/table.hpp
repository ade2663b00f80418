// A table for people: as wide as what is in it; where the page is narrower, the columns that matter
// least are left out.
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
    // Those that can be spared most go first, all of the same number together; 0: stays.
    unsigned spare = 0;
    bool text = false;  // to the left
  };

  // A column is left out rather than that names have less room than `name_room`.
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

  std::string title_;
  std::vector<Column> columns_;
  std::size_t name_room_;
  std::vector<Row> rows_;
};

// A row for each of the first, and one for all others together. Items have a name, and can be added
// to one another. One more than was asked for takes the place of the line that would tell of it.
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
