#include "util/text/ascii.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace cudabpf {

namespace {

constexpr std::pair<std::string_view, char> LIKENESSES[] = {
    {"°", ' '}, {"±", '~'}, {"µ", 'u'}, {"·", '.'}, {"×", 'x'}, {"Δ", 'd'}, {"–", '-'}, {"…", '.'},
    {"→", '>'}, {"≈", '~'}, {"≤", '<'}, {"─", '-'}, {"│", '|'}, {"└", '`'}, {"┤", '|'}, {"┴", '+'},
    {"▁", '_'}, {"▂", '_'}, {"▃", '.'}, {"▄", 'o'}, {"▅", 'o'}, {"▆", 'O'}, {"▇", 'O'}, {"█", '#'},
    {"▏", '|'}, {"░", '.'}, {"▒", ':'}, {"▲", '^'}, {"▼", 'v'}, {"✓", 'y'}, {"✗", 'n'}, {"╱", '/'},
};

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

std::string in_ascii(std::string_view text) {
  std::string ascii;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    while (end < text.size() && continues(text[end])) end++;
    std::string_view character = text.substr(at, end - at);
    const auto* known = std::find_if(std::begin(LIKENESSES), std::end(LIKENESSES),
                                     [&](const auto& one) { return one.first == character; });
    bool is_ascii = static_cast<unsigned char>(text[at]) < 0x80;
    ascii += is_ascii ? text[at] : known == std::end(LIKENESSES) ? '?' : known->second;
    at = is_ascii ? at + 1 : end;
  }
  return ascii;
}

}  // namespace cudabpf
