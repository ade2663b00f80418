// A character as UTF-8.
#pragma once

#include <string>

namespace cudabpf {

inline std::string utf8_of(char32_t code) {
  auto byte = [](char32_t value) { return static_cast<char>(value); };
  auto rest = [&](unsigned shift) { return byte(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xc0 | code >> 6), rest(0)};
  if (code < 0x10000) return {byte(0xe0 | code >> 12), rest(6), rest(0)};
  return {byte(0xf0 | code >> 18), rest(12), rest(6), rest(0)};
}

}  // namespace cudabpf
