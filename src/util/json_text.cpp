#include "util/json_text.hpp"

#include <array>
#include <cstdint>

namespace cudabpf {

namespace {

// The length of the UTF-8 sequence that begins at `at`; 0 if what stands there is not one.
std::size_t sequence_length(std::string_view text, std::size_t at) {
  auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  std::uint8_t first = byte(at);
  std::size_t length = first < 0x80                     ? 1
                       : first >= 0xc2 && first <= 0xdf ? 2
                       : first >= 0xe0 && first <= 0xef ? 3
                       : first >= 0xf0 && first <= 0xf4 ? 4
                                                        : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; i++)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  if (length >= 3) {
    std::uint8_t second = byte(at + 1);
    bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    bool surrogate = first == 0xed && second >= 0xa0;
    bool beyond = first == 0xf4 && second >= 0x90;
    if (overlong || surrogate || beyond) return 0;
  }
  return length;
}

void append_escape(std::string& out, char c) {
  constexpr std::string_view HEX = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += HEX[static_cast<std::uint8_t>(c) >> 4];
      out += HEX[static_cast<std::uint8_t>(c) & 15];
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    char c = text[at];
    if (c == '"' || c == '\\' || static_cast<std::uint8_t>(c) < 0x20 || c == 0x7f) {
      append_escape(out, c);
      at++;
      continue;
    }
    std::size_t length = sequence_length(text, at);
    if (length == 0) {
      out += "\xef\xbf\xbd";
      at++;
    } else {
      out.append(text, at, length);
      at += length;
    }
  }
  out += '"';
}

}  // namespace cudabpf
