#include "util/text/printable.hpp"

#include <algorithm>
#include <iterator>

namespace cudabpf {

namespace {

struct Range {
  char32_t first, last;
};

// What Unicode 15 calls control and format characters, line and paragraph separators, default
// ignorable (zero-width characters, variation selectors, tags), and noncharacters.
constexpr Range NOT_PRINTABLE[] = {
    {0x0000, 0x001f},   {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x034f, 0x034f},
    {0x0600, 0x0605},   {0x061c, 0x061c},   {0x06dd, 0x06dd},   {0x070f, 0x070f},
    {0x0890, 0x0891},   {0x08e2, 0x08e2},   {0x115f, 0x1160},   {0x17b4, 0x17b5},
    {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},
    {0x3164, 0x3164},   {0xd800, 0xdfff},   {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},
    {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},   {0xfffe, 0xffff},
    {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

constexpr Range WIDE[] = {
    {0x1100, 0x115f},   {0x2329, 0x232a},   {0x2e80, 0x303e},   {0x3040, 0xa4cf},
    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},
    {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff},
    {0x20000, 0x2fffd}, {0x30000, 0x3fffd},
};

bool is_in(std::ranges::random_access_range auto const& ranges, char32_t code) {
  const auto* range = std::ranges::lower_bound(ranges, code, {}, &Range::last);
  return range != std::end(ranges) && code >= range->first;
}

// Replacing a character does not change the text's width.
std::size_t columns_of(char32_t code) { return is_in(WIDE, code) && is_printable(code) ? 2 : 1; }

std::string replaced(std::string_view text, bool keep_line_ends) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t plain = 0;  // most text is ASCII, which is quicker to look at than any character
    while (plain < text.size() && text[plain] >= ' ' && text[plain] < 0x7f) plain++;
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    auto [code, size] = first_character(text);
    bool shown = size && (is_printable(code) || (keep_line_ends && code == '\n'));
    size = std::max<std::size_t>(size, 1);
    out += shown ? text.substr(0, size) : "?";
    text.remove_prefix(size);
  }
  return out;
}

}  // namespace

Character first_character(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  auto first = byte(0);
  std::size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (first > 0xf4 || size > text.size()) return {};
  constexpr unsigned OF_FIRST[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  char32_t code = first & OF_FIRST[size];
  for (std::size_t i = 1; i < size; i++) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  if (size == 3 && (code < 0x800 || (code >= 0xd800 && code <= 0xdfff))) return {};
  if (size == 4 && (code < 0x10000 || code > 0x10ffff)) return {};
  return {code, size};
}

bool is_printable(char32_t code) {
  if (code < 0x7f) return code >= ' ';
  constexpr char32_t LAST_OF_PLANE = 0xfffe;  // and the one after it are noncharacters
  return !is_in(NOT_PRINTABLE, code) && (code & LAST_OF_PLANE) != LAST_OF_PLANE;
}

std::string printable(std::string_view text) { return replaced(text, false); }
std::string printable_lines(std::string_view text) { return replaced(text, true); }

std::size_t bytes_of(std::string_view text, std::size_t columns) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    auto [code, size] = first_character(text.substr(bytes));
    std::size_t width = columns_of(code);
    if (width > columns) break;
    columns -= width;
    bytes += std::max<std::size_t>(size, 1);
  }
  return bytes;
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    auto [code, size] = first_character(text);
    width += columns_of(code);
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return width;
}

std::string shortened(const std::string& text, std::size_t columns) {
  if (bytes_of(text, columns) == text.size()) return text;
  if (!columns) return {};
  return text.substr(0, bytes_of(text, columns - 1)) + "…";
}

std::string cut_in_the_middle(const std::string& text, std::size_t columns) {
  std::size_t all = width_of(text), end = columns / 3;
  if (all <= columns) return text;
  std::string_view tail = std::string_view(text).substr(bytes_of(text, all - end));
  if (width_of(tail) > end) tail.remove_prefix(bytes_of(tail, 2));  // half of a wide one
  return shortened(text, columns - end).append(tail);
}

}  // namespace cudabpf
