#include "util/page/braille.hpp"

#include <algorithm>
#include <cmath>

namespace cudabpf {

namespace {

constexpr std::size_t DOTS = 4;  // one above the other, in a character

// How many dots high; at least one for any value but 0.
std::size_t height_of(const std::optional<double>& value, double most, std::size_t dots) {
  if (!value || *value <= 0 || most <= 0) return 0;
  double part = std::min(1.0, *value / most);
  return std::max<std::size_t>(
      1, static_cast<std::size_t>(std::lround(part * static_cast<double>(dots))));
}

// A character with this many dots in its left and right halves, filled from below: U+2800 and a bit
// each.
std::string braille(std::size_t left, std::size_t right) {
  constexpr unsigned LEFT[] = {0, 0x40, 0x44, 0x46, 0x47}, RIGHT[] = {0, 0x80, 0xa0, 0xb0, 0xb8};
  unsigned dots = LEFT[left] | RIGHT[right];
  if (!dots) return " ";
  return {'\xe2', static_cast<char>(0xa0 | dots >> 6), static_cast<char>(0x80 | (dots & 0x3f))};
}

std::size_t dots_in_row(std::size_t height, std::size_t rows_below) {
  std::size_t below = rows_below * DOTS;
  return height > below ? std::min(DOTS, height - below) : 0;
}

}  // namespace

std::vector<std::string> braille_graph(std::span<const std::optional<double>> values, double most,
                                       std::size_t rows, std::size_t columns, bool utf8) {
  std::vector<std::size_t> heights(2 * columns);
  std::size_t shown = std::min(values.size(), heights.size());
  for (std::size_t i = 0; i < shown; i++)
    heights[heights.size() - 1 - i] = height_of(values[values.size() - 1 - i], most, rows * DOTS);
  std::vector<std::string> lines(rows);
  for (std::size_t row = 0; row < rows; row++)
    for (std::size_t column = 0; column < columns; column++) {
      std::size_t left = dots_in_row(heights[2 * column], rows - 1 - row),
                  right = dots_in_row(heights[2 * column + 1], rows - 1 - row);
      if (utf8)
        lines[row] += braille(left, right);
      else
        lines[row] += " .:|#"[std::max(left, right)];
    }
  return lines;
}

std::string bar(double part, std::size_t columns, bool utf8) {
  part = part > 0 ? std::min(part, 1.0) : 0;  // also makes NaN 0
  std::size_t steps = utf8 ? 8 : 1;
  auto filled = static_cast<std::size_t>(std::lround(part * static_cast<double>(columns * steps)));
  if (part > 0) filled = std::max<std::size_t>(filled, 1);
  std::string text;
  for (std::size_t column = 0; column < columns; column++) {
    std::size_t in_it = std::min(steps, filled - std::min(filled, column * steps));
    if (!in_it)
      text += ' ';
    else if (utf8)  // U+2588 is full, U+258F an eighth
      text += {'\xe2', '\x96', static_cast<char>(0x90 - in_it)};
    else
      text += '|';
  }
  return text;
}

}  // namespace cudabpf
