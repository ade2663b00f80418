#include "util/page/table.hpp"

#include <algorithm>

namespace cudabpf {

namespace {

constexpr std::size_t INDENT = 2, GAP = 2;
constexpr std::size_t MIN_TEXT = 12;  // text is never cut to less

std::string padded(const std::string& text, std::size_t width, bool to_left) {
  std::string blanks(width - std::min(width, width_of(text)), ' ');
  return to_left ? text + blanks : blanks + text;
}

void add_line(std::string& line, const std::string& cell, std::size_t width, bool to_left) {
  line += std::string(GAP, ' ') + padded(cell, width, to_left);
}

// Names often differ only at their end or, if they have template arguments, in those.
std::string cut_name(const std::string& name, std::size_t width) {
  constexpr std::size_t FUNCTION_ROOM = 12;
  std::size_t arguments = name.find('<');
  if (width_of(name) <= width || arguments == std::string::npos || width < 2 * FUNCTION_ROOM)
    return cut_in_the_middle(name, width);
  std::size_t of_arguments = width_of(std::string_view(name).substr(arguments));
  std::size_t room = std::max(FUNCTION_ROOM, width - std::min(width, of_arguments));
  std::string function = shortened(name.substr(0, arguments), room);
  return function + shortened(name.substr(arguments), width - width_of(function));
}

std::string cut_text(const std::string& text, std::size_t width) {
  bool is_template = text.find('<') != std::string::npos && text.ends_with('>');
  return is_template ? cut_name(text, width) : shortened(text, width);
}

}  // namespace

void Table::row(std::string name, std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back({std::move(name), std::move(cells)});
}

// How wide each column is; 0: it is left out.
Table::Layout Table::layout(Page& page) const {
  std::size_t longest = width_of(title_) > INDENT ? width_of(title_) - INDENT : 0;
  for (const Row& row : rows_) longest = std::max(longest, width_of(row.name));
  std::size_t needed = std::min({longest, name_room_, page.width() / std::size_t{2}});
  std::size_t beside_names =
      page.width() - std::min<std::size_t>(INDENT + needed + GAP, page.width());
  Layout layout{std::vector<std::size_t>(columns_.size()), 0};
  auto& widths = layout.columns;
  std::size_t taken = INDENT;
  for (std::size_t i = 0; i < columns_.size(); i++) {
    for (const Row& row : rows_) widths[i] = std::max(widths[i], width_of(row.cells[i]));
    if (!widths[i]) continue;
    if (columns_[i].text) widths[i] = std::min(widths[i], beside_names);
    widths[i] = std::max(widths[i], width_of(columns_[i].name));
    taken += widths[i] + GAP;
  }
  auto leave_out = [&](std::size_t i) {
    taken -= widths[i] + GAP;
    widths[i] = 0;
    page.leave_out(columns_[i].name);
  };
  while (taken + needed > page.width()) {
    unsigned most_spare = 0;
    for (std::size_t i = 0; i < columns_.size(); i++)
      if (widths[i]) most_spare = std::max(most_spare, columns_[i].spare);
    if (!most_spare) break;
    for (std::size_t i = 0; i < columns_.size(); i++)
      if (widths[i] && columns_[i].spare == most_spare) leave_out(i);
  }
  // Text columns that must stay are cut; figures are not, since a cut one would be a different one.
  for (std::size_t i = columns_.size(); i-- > 0 && taken + needed > page.width();) {
    std::size_t least = std::max(MIN_TEXT, width_of(columns_[i].name));
    if (!columns_[i].text || widths[i] <= least) continue;
    std::size_t cut = std::min(taken + needed - page.width(), widths[i] - least);
    widths[i] -= cut;
    taken -= cut;
  }
  // If that is not enough, names are cut, and then even those columns go, the last first.
  std::size_t least = std::min(needed, MIN_TEXT);
  for (std::size_t i = columns_.size(); i-- > 1 && taken + least > page.width();)
    if (widths[i]) leave_out(i);
  std::size_t room = page.width() > taken ? page.width() - taken : 0;
  layout.names = std::min(longest, std::max(room, least));
  return layout;
}

void Table::add_to(Page& page) const {
  if (!page.empty()) page.blank();
  auto [widths, names] = layout(page);
  std::string head;
  if (width_of(title_) > names + INDENT)  // above the table there is more room
    page.heading(cut_name(title_, page.width()));
  else
    head = title_;
  head = padded(head, names + INDENT, true);
  for (std::size_t i = 0; i < columns_.size(); i++)
    if (widths[i]) add_line(head, std::string(columns_[i].name), widths[i], columns_[i].text);
  if (std::size_t end = head.find_last_not_of(' '); end != std::string::npos)
    page.heading(head.substr(0, end + 1));
  for (const Row& row : rows_) {
    std::string line = std::string(INDENT, ' ') + padded(cut_name(row.name, names), names, true);
    for (std::size_t i = 0; i < columns_.size(); i++)
      if (widths[i])
        add_line(line, columns_[i].text ? cut_text(row.cells[i], widths[i]) : row.cells[i],
                 widths[i], columns_[i].text);
    page.line(line);
  }
}

}  // namespace cudabpf
