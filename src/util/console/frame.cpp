#include "util/console/frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "util/text/printable.hpp"
#include "util/text/utf8.hpp"

namespace cudabpf {

namespace {

std::string style_text(Style style, bool color) {
  constexpr std::string_view CODES[] = {"", ";31", ";32", ";33", ";34", ";35", ";36", ";90"};
  return fmt::format("\033[0{}{}{}m", style.bold ? ";1" : "", style.reverse ? ";7" : "",
                     color ? CODES[static_cast<std::size_t>(style.colour)] : "");
}

// Characters that take one cell on every terminal: ASCII, and those that pages are drawn with.
bool has_sure_width(char32_t code) {
  return code < 0x7f || code == U'…' || (code >= 0x2500 && code <= 0x259f) ||
         (code >= 0x2800 && code <= 0x28ff);
}

// The text up to `size`, but without a number that would be cut there: it would be another one.
std::string_view without_half_number(std::string_view text, std::size_t end) {
  auto is_digit = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '9'; };
  if (end < text.size() && is_digit(end))
    while (end && is_digit(end - 1)) end--;
  return text.substr(0, end);
}

// Writes cells from a place on, and knows the cursor's place as long as it is certain.
class Pen {
 public:
  Pen(std::string& out, bool color) : out_(out), color_(color) {}

  void write(std::size_t row, std::size_t column, const ScreenFrame::Cell& cell,
             std::size_t width) {
    if (!known_ || row != row_ || column != column_) go(row, column);
    if (!styled_ || cell.style != style_) out_ += style_text(cell.style, color_);
    styled_ = true;
    style_ = cell.style;
    // Terminals disagree on how wide foreign characters are: the cells that one has here are
    // blanked first, and what follows gets a place of its own.
    known_ = has_sure_width(cell.code);
    if (!known_) {
      out_.append(width, ' ');
      go(row, column);
      known_ = false;
    }
    out_ += utf8_of(cell.code);
    row_ = row;
    column_ = column + width;
  }

 private:
  void go(std::size_t row, std::size_t column) {
    out_ += fmt::format("\033[{};{}H", row + 1, column + 1);
    known_ = true;
  }

  std::string& out_;
  const bool color_;
  bool known_ = false, styled_ = false;
  std::size_t row_ = 0, column_ = 0;
  Style style_;
};

}  // namespace

std::size_t ScreenFrame::write(std::size_t row, std::size_t column, std::string_view text,
                               Style style, std::size_t room) {
  if (row >= size_.rows || column >= size_.columns) return 0;
  room = std::min(room, size_.columns - column);
  std::string shown = printable(text);
  bool cut = width_of(shown) > room;
  std::string_view rest = shown;
  if (cut) rest = without_half_number(rest, bytes_of(rest, room ? room - 1 : 0));
  std::size_t begin = column;
  while (!rest.empty()) {
    auto [code, size] = first_character(rest);
    std::size_t width = width_of(rest.substr(0, size));
    put(row, column, code, width, style);
    column += width;
    rest.remove_prefix(size);
  }
  if (cut && room) put(row, column++, utf8_ ? U'…' : U'~', 1, style);
  return column - begin;
}

void ScreenFrame::write_right(std::size_t row, std::size_t column, std::size_t room,
                              std::string_view text, Style style) {
  if (column >= size_.columns) return;
  room = std::min(room, size_.columns - column);
  std::size_t width = width_of(text);
  if (width > room)
    write(row, column, std::string(room, '#'), style);
  else
    write(row, column + room - width, text, style);
}

void ScreenFrame::put(std::size_t row, std::size_t column, char32_t code, std::size_t width,
                      Style style) {
  Cell* cell = &cells_[row * size_.columns + column];
  // If this covers half of a wide character, the other half becomes a blank.
  if (!cell->code && column) cell[-1].code = ' ';
  std::size_t after = column + width;
  if (after < size_.columns && !cell[width].code) cell[width].code = ' ';
  bool shown = utf8_ || code < 0x7f;
  *cell = {shown ? code : U'?', style};
  for (std::size_t i = 1; i < width; i++) cell[i] = {shown ? U'\0' : U'?', style};
}

void ScreenFrame::paint(std::size_t row, Style style) {
  if (row >= size_.rows) return;
  for (std::size_t column = 0; column < size_.columns; column++)
    cells_[row * size_.columns + column].style = style;
}

std::string ScreenFrame::text() const {
  std::string text;
  for (std::size_t row = 0; row < size_.rows; row++) {
    for (std::size_t column = 0; column < size_.columns; column++)
      if (char32_t code = at(row, column).code) text += utf8_of(code);
    text.resize(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

std::string difference(const ScreenFrame* before, const ScreenFrame& now, bool color) {
  std::string out;
  if (before && before->size() != now.size()) before = nullptr;
  if (!before) out += "\033[0m\033[2J";
  Pen pen(out, color);
  const ScreenFrame::Cell blank;
  for (std::size_t row = 0; row < now.size().rows; row++)
    for (std::size_t column = 0; column < now.size().columns;) {
      const ScreenFrame::Cell& cell = now.at(row, column);
      std::size_t width = column + 1 < now.size().columns && !now.at(row, column + 1).code ? 2 : 1;
      bool same = true;
      for (std::size_t i = 0; i < width; i++)
        same &= now.at(row, column + i) == (before ? before->at(row, column + i) : blank);
      if (!same) pen.write(row, column, cell, width);
      column += width;
    }
  if (!out.empty()) out += "\033[0m";
  return out;
}

}  // namespace cudabpf
