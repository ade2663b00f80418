// Text of anybody's making as a terminal may be given it, and how much room it takes there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cudabpf {

// The first character of a text that is not empty. `size` 0: its first byte is not UTF-8.
struct Character {
  char32_t code = 0;
  std::size_t size = 0;
};
Character first_character(std::string_view text);

// Neither moves a cursor, nor changes the order or the look of its neighbours, nor is invisible.
bool is_printable(char32_t code);

// Each character that is not printable, and each byte that is no UTF-8, becomes a question mark:
// paths, names and command lines of traced programs must not write to root's terminal. Whatever is
// shown to people goes through this in the last place that knows text from colour: log::write(),
// Page, LiveSink, Svg. One line stays one line.
std::string printable(std::string_view text);
// The same for text that may have several lines.
std::string printable_lines(std::string_view text);

// Columns of a terminal, as {fmt} and std::format estimate them: two for what East Asia writes
// wide.
std::size_t width_of(std::string_view text);
// How many bytes of it fit into so many columns.
std::size_t bytes_of(std::string_view text, std::size_t columns);
// At most `columns` of it, with "…" where it is cut.
std::string shortened(const std::string& text, std::size_t columns);
// The same, with its end: what is left out is in the middle.
std::string cut_in_the_middle(const std::string& text, std::size_t columns);

}  // namespace cudabpf
