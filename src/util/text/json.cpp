#include "util/text/json.hpp"

#include <algorithm>

#include "util/text/printable.hpp"

namespace cudabpf::json {

namespace {

bool is_plain(char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }

char* put_unit(char* at, char32_t unit) {
  at = put(at, "\\u");
  for (int shift = 12; shift >= 0; shift -= 4) *at++ = "0123456789abcdef"[unit >> shift & 15];
  return at;
}

// One character as JSON's \u escapes, surrogate pairs included.
char* put_escaped(char* at, char32_t code) {
  constexpr char32_t PLANE = 0x10000, HIGH = 0xd800, LOW = 0xdc00;
  if (code < PLANE) return put_unit(at, code);
  at = put_unit(at, HIGH + ((code - PLANE) >> 10));
  return put_unit(at, LOW + ((code - PLANE) & 0x3ff));
}

char* put_control(char* at, char32_t c) {
  switch (c) {
    case '\b':
      return put(at, "\\b");
    case '\f':
      return put(at, "\\f");
    case '\n':
      return put(at, "\\n");
    case '\r':
      return put(at, "\\r");
    case '\t':
      return put(at, "\\t");
    default:
      return put_escaped(at, c);
  }
}

}  // namespace

char* put_string(char* at, std::string_view text) {
  *at++ = '"';
  while (!text.empty()) {
    char c = text[0];
    if (is_plain(c)) {
      *at++ = c;
      text.remove_prefix(1);
      continue;
    }
    auto [code, size] = first_character(text);
    if (!size) {
      at = put(at, "\xef\xbf\xbd");
      size = 1;
    } else if (c == '"' || c == '\\') {
      *at++ = '\\';
      *at++ = c;
    } else if (is_printable(code)) {
      at = put(at, text.substr(0, size));
    } else {
      at = put_control(at, code);
    }
    text.remove_prefix(size);
  }
  *at++ = '"';
  return at;
}

std::string without_invisible(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  char escaped[2 * MAX_EXPANSION];
  while (!json.empty()) {
    auto [code, size] = first_character(json);
    bool stays = !size || code == '\n' || is_printable(code);
    size = std::max<std::size_t>(size, 1);
    if (stays)
      out += json.substr(0, size);
    else
      out.append(escaped, put_escaped(escaped, code));
    json.remove_prefix(size);
  }
  return out;
}

std::string quoted(std::string_view text) {
  std::string out(2 + MAX_EXPANSION * text.size(), '\0');
  out.resize(static_cast<std::size_t>(put_string(out.data(), text) - out.data()));
  return out;
}

}  // namespace cudabpf::json
