// Makes foreign text safe for a terminal, and says how much room it takes there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cudabpf {

// The first character of a nonempty text. `size` 0: it does not begin with valid UTF-8.
struct Character {
  char32_t code = 0;
  std::size_t size = 0;
};
Character first_character(std::string_view text);

// It is visible, does not move the cursor, and changes neither the order nor the look of others.
bool is_printable(char32_t code);

// Replaces each unprintable character, and each byte that is not UTF-8, by a question mark: paths,
// names and command lines of traced programs must not control root's terminal. Everything shown to
// people goes through this in the last place that can distinguish text from colour: log::write(),
// Page, LiveSink, Svg. One line stays one line.
std::string printable(std::string_view text);
// The same for text that may have several lines.
std::string printable_lines(std::string_view text);

// Columns on a terminal, as {fmt} and std::format estimate them: wide East Asian text takes two.
std::size_t width_of(std::string_view text);
// How many bytes of the text fit into `columns`.
std::size_t bytes_of(std::string_view text, std::size_t columns);
// At most `columns` of the text, with "…" where it is cut.
std::string shortened(const std::string& text, std::size_t columns);
// The same, but cut in the middle, so that the end stays.
std::string cut_in_the_middle(const std::string& text, std::size_t columns);

}  // namespace cudabpf
