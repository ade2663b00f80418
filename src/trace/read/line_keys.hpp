// The keys of a line, distinguished by their first eight bytes as a number, which takes a few
// instructions. Eight bytes can be read anywhere, since a line is followed by LineParser::PADDING.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace cudabpf::analyze {

static_assert(std::endian::native == std::endian::little);

enum class Key : std::uint8_t {
#define NUMBER(key, member, type, read, shown) member,
#define NAME(key, member, shown) member,
#define FLAG(key, member, shown) member,
#include "trace/read/line_fields.def"
  args,
  unknown,
};

inline std::uint64_t eight_bytes_at(const char* text) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, text, sizeof(bytes));
  return bytes;
}

constexpr std::uint64_t packed(std::string_view key) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < key.size() && i < 8; i++)
    bytes |= std::uint64_t{static_cast<unsigned char>(key[i])} << (8 * i);
  return bytes;
}

// packed(), of a part of a line.
inline std::uint64_t packed_at(std::string_view key) {
  std::uint64_t bytes = eight_bytes_at(key.data());
  return key.size() < 8 ? bytes & ((std::uint64_t{1} << 8 * key.size()) - 1) : bytes;
}

// The text before the next quote, or before the end. Keys with escapes are none of ours.
inline std::string_view key_at(const char* raw, const char* end) {
  std::uint64_t others = eight_bytes_at(raw) ^ 0x2222222222222222;  // a quote is a zero byte
  std::uint64_t quotes = (others - 0x0101010101010101) & ~others & 0x8080808080808080;
  if (quotes) return {raw, static_cast<std::size_t>(std::countr_zero(quotes)) / 8};
  std::string_view rest(raw, static_cast<std::size_t>(end - raw));
  return rest.substr(0, rest.find('"'));
}

inline Key key_named(std::string_view key) {
  auto if_is = [&](std::string_view known, Key one) {
    bool is = key.size() == known.size() && (known.size() <= 8 || key.substr(8) == known.substr(8));
    return is ? one : Key::unknown;
  };
  switch (packed_at(key)) {
#define NUMBER(name, member, type, read, shown) \
  case packed(#name):                           \
    return if_is(#name, Key::member);
#define NAME(name, member, shown) \
  case packed(#name):             \
    return if_is(#name, Key::member);
#define FLAG(name, member, shown) \
  case packed(#name):             \
    return if_is(#name, Key::member);
#include "trace/read/line_fields.def"
    case packed("args"):
      return if_is("args", Key::args);
    default:
      return Key::unknown;
  }
}

}  // namespace cudabpf::analyze
