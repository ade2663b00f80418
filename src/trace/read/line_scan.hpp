// Reads a line as cudabpf itself writes it: no blanks, no escapes, and only names that were seen
// before. Anything else is left to a parser of all of JSON, so both read every line alike. Most
// lines of a trace are of this form, and take a third of the time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include "trace/read/line.hpp"
#include "trace/read/line_keys.hpp"

namespace cudabpf::analyze {

// `Known`: bool(std::string_view key, std::string_view raw, Name& to), whether the text is a name
// that was seen before, and so has no escapes.
template <typename Known>
class LineScan {
 public:
  // Some bytes after the text must be readable.
  LineScan(std::string_view text, Line& line, Known known)
      : at_(text.data()), end_(text.data() + text.size()), line_(line), known_(known) {}

  // False: it is not such a line. Its values in `line` must then be discarded.
  bool object() {
    if (!take('{')) return false;
    do {
      if (!take('"')) return false;
      std::string_view key = key_at(at_, end_);
      at_ += key.size();
      if (!take('"') || !take(':') || !value(key)) return false;
    } while (take(','));
    return take('}') && at_ == end_;
  }

 private:
  bool take(char c) {
    bool is = at_ < end_ && *at_ == c;
    at_ += is;
    return is;
  }

  bool value(std::string_view key) {
    switch (packed_at(key)) {
#define NUMBER(name, member, type, how, shown)    \
  case packed(#name):                             \
    if (!is_key(key, #name)) return unknown(key); \
    if (!how(line_.member)) return false;         \
    line_.set(Field::member);                     \
    return true;
#define NAME(key_, member, shown) \
  case packed(#key_):             \
    return is_key(key, #key_) ? name(key, line_.member) : unknown(key);
#define FLAG(key_, member, shown) \
  case packed(#key_):             \
    return is_key(key, #key_) ? flag(line_.member) : unknown(key);
#include "trace/read/line_fields.def"
      case packed("args"):
        return is_key(key, "args") ? args() : unknown(key);
      default:
        return unknown(key);
    }
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  // Numbers that are too large for 19 digits are left to the other parser.
  bool digits(std::uint64_t& number) {
    constexpr int MOST = 19;
    const char* begin = at_;
    number = 0;
    while (at_ < end_ && is_digit(*at_) && at_ - begin <= MOST)
      number = number * 10 + static_cast<std::uint64_t>(*at_++ - '0');
    return at_ > begin && at_ - begin <= MOST;
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
    constexpr int MOST = 16;
    if (!take('"') || !take('0') || !take('x')) return false;
    const char* begin = at_;
    to = 0;
    for (; at_ < end_ && at_ - begin <= MOST; at_++) {
      std::uint64_t digit = is_digit(*at_) ? static_cast<std::uint64_t>(*at_ - '0')
                            : *at_ >= 'a' && *at_ <= 'f'
                                ? static_cast<std::uint64_t>(*at_ - 'a') + 10
                                : 16;
      if (digit > 15) break;
      to = to << 4 | digit;
    }
    return at_ > begin && at_ - begin <= MOST && take('"');
  }
  bool dimensions(Dimensions& to) {
    if (!take('[')) return false;
    for (std::size_t i = 0; i < to.size(); i++) {
      std::uint64_t number = 0;
      if ((i && !take(',')) || !digits(number)) return false;
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

  bool unknown(std::string_view key) { return std::ranges::all_of(key, is_plain) && other(); }
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

  const char* at_;
  const char* end_;
  Line& line_;
  Known known_;
};

}  // namespace cudabpf::analyze
