#include "util/text/wrapped.hpp"

#include <algorithm>

#include "util/text/printable.hpp"

namespace cudabpf {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// How many bytes of a text that is too long go onto this line, which takes `fitting`.
std::size_t bytes_before_break(std::string_view text, std::size_t fitting) {
  std::size_t at = text.rfind(' ', fitting);
  while (at != std::string_view::npos && at && is_digit(text[at - 1]))  // "3 ms"
    at = text.rfind(' ', at - 1);
  if (at != std::string_view::npos && at) return at;
  return std::max(fitting, std::max<std::size_t>(first_character(text).size, 1));
}

}  // namespace

std::vector<std::string_view> wrapped(std::string_view text, std::size_t columns) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    std::size_t size = bytes_of(text, columns);
    if (size < text.size()) size = bytes_before_break(text, size);
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  return lines;
}

}  // namespace cudabpf
