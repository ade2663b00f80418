// JSON by hand, for lines that are written millions of times. Every put_…() appends at `at` and
// returns the new end; the caller provides the room.
#pragma once

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace cudabpf::json {

constexpr std::size_t MAX_NUMBER = 20;    // 2^64 - 1
constexpr std::size_t MAX_ADDRESS = 20;   // "0x0123456789abcdef", quotes included
constexpr std::size_t MAX_EXPANSION = 6;  // \u001f stands for one byte

inline char* put(char* at, std::string_view text) {
  std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

inline char* put_number(char* at, std::uint64_t value) {
  return std::to_chars(at, at + MAX_NUMBER, value).ptr;
}

inline char* put_signed(char* at, std::int64_t value) {
  return std::to_chars(at, at + MAX_NUMBER, value).ptr;
}

// "0x7f00", as a string: readers that keep numbers as doubles would round an address.
inline char* put_address(char* at, std::uint64_t value) {
  at = put(at, "\"0x");
  auto bits = static_cast<unsigned>(std::bit_width(value));  // its type depends on the library
  unsigned digits = value ? (bits + 3) / 4 : 1;
  for (unsigned i = digits; i-- > 0; value >>= 4) at[i] = "0123456789abcdef"[value & 15];
  at[digits] = '"';
  return at + digits + 1;
}

// Nanoseconds as microseconds with three decimals: exact.
inline char* put_microseconds(char* at, std::uint64_t ns) {
  at = put_number(at, ns / 1000);
  auto rest = static_cast<unsigned>(ns % 1000);
  at[0] = '.';
  at[1] = static_cast<char>('0' + rest / 100);
  at[2] = static_cast<char>('0' + rest / 10 % 10);
  at[3] = static_cast<char>('0' + rest % 10);
  return at + 4;
}

// `text` as a JSON string with its quotes. It may hold any bytes: invalid UTF-8 becomes U+FFFD, and
// unprintable characters are escaped, because people look at traces in terminals. Takes at most
// 2 + MAX_EXPANSION * text.size() bytes.
char* put_string(char* at, std::string_view text);

// The same for JSON written elsewhere, in UTF-8 and with no white space but line ends and spaces.
std::string without_invisible(std::string_view json);

std::string quoted(std::string_view text);

}  // namespace cudabpf::json
