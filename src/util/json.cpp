#include "util/json.hpp"

namespace cudabpf::json {

namespace {

// How many bytes at the front of `text` are one well-formed UTF-8 character; 0: none are.
std::size_t character_size(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  auto first = byte(0);
  std::size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (first > 0xf4 || size > text.size()) return 0;
  for (std::size_t i = 1; i < size; i++)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (first == 0xe0 && byte(1) < 0xa0) return 0;   // longer than need be
  if (first == 0xed && byte(1) >= 0xa0) return 0;  // half of a surrogate pair
  if (first == 0xf0 && byte(1) < 0x90) return 0;   // longer than need be
  if (first == 0xf4 && byte(1) >= 0x90) return 0;  // beyond U+10FFFF
  return size;
}

bool is_plain(char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }

char* put_control(char* at, unsigned char c) {
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
      at = put(at, "\\u00");
      *at++ = "0123456789abcdef"[c >> 4];
      *at++ = "0123456789abcdef"[c & 15];
      return at;
  }
}

}  // namespace

char* put_string(char* at, std::string_view text) {
  *at++ = '"';
  while (!text.empty()) {
    char c = text[0];
    std::size_t size = 1;
    if (is_plain(c)) {
      *at++ = c;
    } else if (c == '"' || c == '\\') {
      *at++ = '\\';
      *at++ = c;
    } else if ((c >= 0 && c < ' ') || c == 0x7f) {
      at = put_control(at, static_cast<unsigned char>(c));
    } else if ((size = character_size(text)) > 0) {
      at = put(at, text.substr(0, size));
    } else {
      at = put(at, "\xef\xbf\xbd");
      size = 1;
    }
    text.remove_prefix(size);
  }
  *at++ = '"';
  return at;
}

std::string quoted(std::string_view text) {
  std::string out(2 + MAX_EXPANSION * text.size(), '\0');
  out.resize(static_cast<std::size_t>(put_string(out.data(), text) - out.data()));
  return out;
}

}  // namespace cudabpf::json
