// Lines that later ones are compared with. Programs do the same over and over, so many lines differ
// from an earlier one in a few values only: what is the same as there is not read again.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "trace/read/line.hpp"
#include "trace/read/line_keys.hpp"

namespace cudabpf::analyze {

struct LinePattern {
  static constexpr std::size_t MAX_SIZE = 1024, MAX_PARTS = 32;
  struct Part {                  // a field
    std::uint16_t begin = 0;     // of its key's first quote in the text
    std::uint16_t end = 0;       // behind what follows the value: a comma, or the line's end
    std::uint16_t key_size = 0;  // with its quotes and the colon
    Key key = Key::unknown;
  };

  std::uint64_t mark = 0;  // see LinePatterns
  std::size_t count = 0;   // of parts; 0: it is none
  std::size_t size = 0;    // of the text
  std::size_t args = 0;    // which part they are; `count`: there are none
  std::array<Part, MAX_PARTS> parts;
  std::array<char, MAX_SIZE + 8> text;
  std::array<std::uint8_t, MAX_SIZE + 1> part_at;  // each byte's part; `count` at the end
  Line line;                                       // its values
};

// How many bytes both begin with alike, `size` at most. Eight more must be readable.
inline std::size_t same_bytes(const char* a, const char* b, std::size_t size) {
  for (std::size_t at = 0; at < size; at += 8)
    if (std::uint64_t differ = eight_bytes_at(a + at) ^ eight_bytes_at(b + at))
      return std::min(size, at + static_cast<std::size_t>(std::countr_zero(differ)) / 8);
  return size;
}

// Patterns by the marks of their lines: what stands behind the id, and before the end. In a call
// that is the function and, if it launches one, the kernel's handle.
class LinePatterns {
 public:
  static constexpr std::size_t MIN_SIZE = 96;  // shorter lines have no mark

  static std::uint64_t mark_of(std::string_view line) {
    constexpr std::string_view ID = R"({"id":)";
    constexpr std::size_t MAX_DIGITS = 16;
    const char *at = line.data() + ID.size(), *end = line.data() + line.size();
    std::uint64_t sum = eight_bytes_at(end - 24) * 0xd6e8feb86659fd93 +
                        eight_bytes_at(end - 16) * 0xa0761d6478bd642f +
                        eight_bytes_at(end - 8) * 0xe7037ed1a0b428db;
    if (line.starts_with(ID)) {
      for (const char* behind = at + MAX_DIGITS; at < behind && *at != ',';) at++;
      sum += eight_bytes_at(at + 24) * 0xc2b2ae3d27d4eb4f +
             eight_bytes_at(at + 32) * 0x165667b19e3779f9;
    }
    return sum + eight_bytes_at(at) * 0x9e3779b97f4a7c15 +
           eight_bytes_at(at + 8) * 0xff51afd7ed558ccd +
           eight_bytes_at(at + 16) * 0xc4ceb9fe1a85ec53;
  }

  // The one that a line with this mark may be like; null: none.
  const LinePattern* with(std::uint64_t mark) const {
    const LinePattern* pattern = patterns_[mark >> (64 - BITS)].get();
    return pattern && pattern->count && pattern->mark == mark ? pattern : nullptr;
  }
  // Where to keep a line with this mark as a pattern; null: nowhere, since no other came lately.
  LinePattern* room_for(std::uint64_t mark) {
    auto& seen = marks_[mark >> (64 - MARK_BITS)];
    if (seen != mark) {
      seen = mark;
      return nullptr;
    }
    auto& pattern = patterns_[mark >> (64 - BITS)];
    if (!pattern) pattern = std::make_unique<LinePattern>();
    pattern->mark = mark;
    pattern->count = 0;
    return pattern.get();
  }

 private:
  static constexpr int BITS = 8, MARK_BITS = 10;
  std::array<std::unique_ptr<LinePattern>, std::size_t{1} << BITS> patterns_;
  std::array<std::uint64_t, std::size_t{1} << MARK_BITS> marks_{};
};

}  // namespace cudabpf::analyze
