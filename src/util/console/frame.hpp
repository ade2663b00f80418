// A screenful of characters, and how to turn one into another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cudabpf {

enum class Colour : std::uint8_t { none, red, green, yellow, blue, magenta, cyan, grey };

struct Style {
  Colour colour = Colour::none;
  bool bold = false, reverse = false;
  bool operator==(const Style&) const = default;
};

class ScreenFrame {
 public:
  struct Size {
    std::size_t rows = 0, columns = 0;
    bool operator==(const Size&) const = default;
  };
  struct Cell {
    char32_t code = ' ';  // 0: the right half of a wide character
    Style style;
    bool operator==(const Cell&) const = default;
  };

  // Without `utf8` all of it is ASCII.
  explicit ScreenFrame(Size size, bool utf8 = true)
      : size_(size), utf8_(utf8), cells_(size.rows * size.columns) {}

  // Writes text from a cell on, in at most `room` columns and not beyond the right edge, with "…"
  // where it is cut; returns how many it took. What is not printable becomes "?".
  std::size_t write(std::size_t row, std::size_t column, std::string_view text, Style style = {},
                    std::size_t room = SIZE_MAX);
  // The same, with its end at the right of the room. What is too long is not shown, but "#" for
  // each column: a number that lacks digits is another number.
  void write_right(std::size_t row, std::size_t column, std::size_t room, std::string_view text,
                   Style style = {});
  void paint(std::size_t row, Style style);  // all of a row, with what stands there

  const Size& size() const { return size_; }
  bool utf8() const { return utf8_; }
  const Cell& at(std::size_t row, std::size_t column) const {
    return cells_[row * size_.columns + column];
  }
  // Its lines, without blanks at their ends.
  std::string text() const;

 private:
  void put(std::size_t row, std::size_t column, char32_t code, std::size_t width, Style style);

  Size size_;
  bool utf8_;
  std::vector<Cell> cells_;
};

// Turns a terminal that shows `before` into one that shows `now`; null: it may show anything. The
// cursor may be left anywhere.
std::string difference(const ScreenFrame* before, const ScreenFrame& now, bool color);

}  // namespace cudabpf
