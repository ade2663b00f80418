// Reads a line as cudabpf itself writes it: no blanks, no escapes, and only names that were seen
// before. Anything else is left to a parser of all of JSON, so both read every line alike. Most
// lines of a trace are of this form, and take a third of the time, or less where a line is like an
// earlier one.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include "trace/read/line.hpp"
#include "trace/read/line_keys.hpp"
#include "trace/read/line_patterns.hpp"

namespace cudabpf::analyze {

// `Known`: bool(std::string_view key, std::string_view raw, Name& to), whether the text is a name
// that was seen before, and so has no escapes.
template <typename Known>
class LineScan {
 public:
  // Sixteen bytes after the text must be readable.
  LineScan(std::string_view text, Line& line, LinePatterns& patterns, Known known)
      : begin_(text.data()),
        at_(begin_),
        end_(begin_ + text.size()),
        line_(line),
        patterns_(patterns),
        known_(known) {}

  // False: it is not such a line. Its values in `line` must then be discarded.
  bool object() {
    if (size() < LinePatterns::MIN_SIZE) return read(nullptr);
    std::uint64_t mark = LinePatterns::mark_of({begin_, size()});
    const LinePattern* pattern = patterns_.with(mark);
    return (pattern && is_like(*pattern)) || read(patterns_.room_for(mark));
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }

  void begin(const Line& values) {
    std::uint64_t number = line_.number;
    copy(values);
    line_.number = number;
    line_.text = {begin_, size()};
    at_ = begin_;
  }
  // The compiler's way for so many bytes takes as long as a few fields.
  void copy(const Line& values) {
    constexpr std::size_t PIECE = 32, WHOLE = sizeof(Line) / PIECE * PIECE;
    auto* to = reinterpret_cast<char*>(&line_);
    const auto* from = reinterpret_cast<const char*>(&values);
    for (std::size_t at = 0; at < WHOLE; at += PIECE) std::memcpy(to + at, from + at, PIECE);
    std::memcpy(to + WHOLE, from + WHOLE, sizeof(Line) - WHOLE);
  }

  // Reads it if it has the pattern's keys, in their order.
  bool is_like(const LinePattern& pattern) {
    begin(pattern.line);
    if (!take('{')) return false;
    for (std::size_t i = 0; i < pattern.count;) {
      std::size_t from = pattern.parts[i].begin;
      std::size_t left = std::min(pattern.size - from, static_cast<std::size_t>(end_ - at_));
      std::size_t same = same_bytes(at_, pattern.text.data() + from, left);
      std::size_t differs = pattern.part_at[from + same];
      if (pattern.args >= i && pattern.args < differs) {
        const LinePattern::Part& args = pattern.parts[pattern.args];
        std::size_t size = args.end - args.begin - std::size_t{args.key_size} - 1;
        line_.args = {at_ + (args.begin - from) + args.key_size, size};
      }
      if (differs == pattern.count) {
        at_ += same;
        break;
      }
      const LinePattern::Part& part = pattern.parts[differs];
      std::size_t behind_key = part.begin + std::size_t{part.key_size};
      if (from + same < behind_key) return false;
      at_ += behind_key - from;
      if (!value(part.key) || !take(pattern.text[part.end - std::size_t{1}])) return false;
      i = differs + 1;
    }
    return at_ == end_;
  }

  // Makes a pattern of it, if there is room for one.
  bool read(LinePattern* pattern) {
    static const Line EMPTY;
    begin(EMPTY);
    std::size_t count = 0;
    if (!take('{')) return false;
    do {
      const char* quote = at_;
      if (!take('"')) return false;
      std::string_view text = key_at(at_, end_);
      at_ += text.size();
      if (!take('"') || !take(':')) return false;
      Key key = key_named(text);
      if (key == Key::unknown && !std::ranges::all_of(text, is_plain)) return false;
      const char* behind = at_;
      if (!value(key)) return false;
      if (pattern && count < pattern->parts.size())
        pattern->parts[count] = {.begin = static_cast<std::uint16_t>(quote - begin_),
                                 .end = static_cast<std::uint16_t>(at_ + 1 - begin_),
                                 .key_size = static_cast<std::uint16_t>(behind - quote),
                                 .key = key};
      count++;
    } while (take(','));
    if (!take('}') || at_ != end_) return false;
    if (pattern && size() <= LinePattern::MAX_SIZE && count <= pattern->parts.size())
      keep(*pattern, count);
    return true;
  }

  void keep(LinePattern& pattern, std::size_t count) {
    pattern.args = count;
    for (std::size_t i = 0; i < count; i++) {
      const LinePattern::Part& part = pattern.parts[i];
      // Where a key comes twice, its last value holds, whichever of them differs.
      for (std::size_t j = 0; j < i && part.key != Key::unknown; j++)
        if (part.key == pattern.parts[j].key) return;
      if (part.key == Key::args) pattern.args = i;
      std::fill_n(pattern.part_at.begin() + part.begin, part.end - part.begin,
                  static_cast<std::uint8_t>(i));
    }
    pattern.part_at[size()] = static_cast<std::uint8_t>(count);
    std::memcpy(pattern.text.data(), begin_, size());
    pattern.size = size();
    pattern.line = line_;
    pattern.count = count;
  }

  bool take(char c) {
    bool is = at_ < end_ && *at_ == c;
    at_ += is;
    return is;
  }

  bool value(Key key) {
    switch (key) {
#define NUMBER(name, member, type, how, shown) \
  case Key::member:                            \
    if (!how(line_.member)) return false;      \
    line_.set(Field::member);                  \
    return true;
#define NAME(key_, member, shown) \
  case Key::member:               \
    return name(#key_, line_.member);
#define FLAG(key_, member, shown) \
  case Key::member:               \
    return flag(line_.member);
#include "trace/read/line_fields.def"
      case Key::args:
        return args();
      case Key::unknown:
        break;
    }
    return other();
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  // Eight digits at a time. Numbers of more than 19 are left to the other parser.
  bool digits(std::uint64_t& number) {
    constexpr std::size_t MAX = 19;
    std::size_t count = digits_at(at_, number), all = count;
    while (count == 8 && all <= MAX) {
      std::uint64_t part = 0;
      count = digits_at(at_ + all, part);
      number = number * POWERS[count] + part;
      all += count;
    }
    at_ += all;
    return all > 0 && all <= MAX;
  }
  static constexpr std::array<std::uint64_t, 9> POWERS = {
      1, 10, 100, 1'000, 10'000, 100'000, 1'000'000, 10'000'000, 100'000'000};
  // The number that at most eight digits are, and how many they are.
  static std::size_t digits_at(const char* text, std::uint64_t& number) {
    std::uint64_t bytes = eight_bytes_at(text) ^ 0x3030303030303030;
    std::uint64_t others = (bytes | (bytes + 0x7676767676767676)) & 0x8080808080808080;
    std::size_t count = others ? static_cast<std::size_t>(std::countr_zero(others)) / 8 : 8;
    number = 0;
    if (!count) return 0;
    bytes <<= 8 * (8 - count);  // zeroes come before it
    bytes = bytes * 10 + (bytes >> 8);
    number = ((bytes & 0x000000ff000000ff) * 0x000f424000000064 +
              (bytes >> 16 & 0x000000ff000000ff) * 0x0000271000000001) >>
             32;
    return count;
  }
  bool ends() const { return at_ < end_ && (*at_ == ',' || *at_ == '}'); }

  template <typename Number>
  bool whole(Number& to) {
    bool is_negative = std::numeric_limits<Number>::is_signed && take('-');
    std::uint64_t number = 0;
    if (!digits(number) || !ends()) return false;
    if (number > static_cast<std::uint64_t>(std::numeric_limits<Number>::max())) return false;
    to = static_cast<Number>(number);
    if constexpr (std::numeric_limits<Number>::is_signed)
      if (is_negative) to = -to;
    return true;
  }
  bool nanoseconds(std::uint64_t& ns) { return whole(ns); }
  bool microseconds(std::uint64_t& ns) {
    std::uint64_t us = 0, part = 0;
    if (!digits(us) || !take('.')) return false;
    const char* point = at_;
    if (!digits(part) || at_ - point != 3 || !ends()) return false;
    if (us >= std::numeric_limits<std::uint64_t>::max() / 2000) return false;
    ns = us * 1000 + part;
    return true;
  }
  bool address(std::uint64_t& to) {
    constexpr int MAX = 16;
    if (!take('"') || !take('0') || !take('x')) return false;
    const char* begin = at_;
    to = 0;
    for (; at_ < end_ && at_ - begin <= MAX; at_++) {
      std::uint64_t digit = is_digit(*at_) ? static_cast<std::uint64_t>(*at_ - '0')
                            : *at_ >= 'a' && *at_ <= 'f'
                                ? static_cast<std::uint64_t>(*at_ - 'a') + 10
                                : 16;
      if (digit > 15) break;
      to = to << 4 | digit;
    }
    return at_ > begin && at_ - begin <= MAX && take('"');
  }
  bool dimensions(Dimensions& to) {
    if (!take('[')) return false;
    for (std::size_t i = 0; i < to.size(); i++) {
      std::uint64_t number = 0;
      if (i && !take(',')) return false;
      const char* first = at_;
      if (!digits(number) || (*first == '0' && at_ - first > 1)) return false;
      if (number > std::numeric_limits<std::uint32_t>::max()) return false;
      to[i] = static_cast<std::uint32_t>(number);
    }
    return take(']');
  }
  bool flag(bool& to) {
    to = word("true");
    return to || word("false");
  }
  bool word(std::string_view word) {
    if (static_cast<std::size_t>(end_ - at_) < word.size() ||
        std::string_view(at_, word.size()) != word)
      return false;
    at_ += word.size();
    return true;
  }
  bool name(std::string_view key, Name& to) {
    if (!take('"')) return false;
    const void* quote = std::memchr(at_, '"', static_cast<std::size_t>(end_ - at_));
    if (!quote) return false;
    std::string_view raw(at_, static_cast<std::size_t>(static_cast<const char*>(quote) - at_));
    at_ += raw.size() + 1;
    return !raw.empty() && known_(key, raw, to);
  }

  static bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '\\'; }

  // A value that is not needed, if it is a plain text or number.
  bool other() {
    if (at_ < end_ && *at_ == '"') return text();
    std::uint64_t ignored = 0;
    take('-');
    if (!digits(ignored)) return false;
    if (take('.') && !digits(ignored)) return false;
    return ends();
  }
  bool text() {
    if (!take('"')) return false;
    while (at_ < end_ && *at_ != '"' && is_plain(*at_)) at_++;
    return take('"');
  }

  // Plain values by their names, and objects of such.
  bool args() {
    const char* begin = at_;
    if (!take('{')) return false;
    for (std::size_t depth = 1;; at_++) {
      bool is_empty = at_[-1] == '{' && at_ < end_ && *at_ == '}';
      if (!is_empty) {
        if (!text() || !take(':')) return false;
        if (at_ < end_ && *at_ == '{') {
          depth++;
          continue;
        }
        bool ignored = false;
        if (!flag(ignored) && !word("null") && !other()) return false;
      }
      while (take('}')) {
        if (--depth) continue;
        line_.args = {begin, static_cast<std::size_t>(at_ - begin)};
        return true;
      }
      if (at_ == end_ || *at_ != ',') return false;
    }
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  Line& line_;
  LinePatterns& patterns_;
  Known known_;
};

}  // namespace cudabpf::analyze
