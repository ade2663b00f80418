#include "util/text/glob.hpp"

#include <algorithm>

namespace cudabpf {

namespace {

// Whether `c` is in the set that begins after the '[' at the pattern's start; `length` becomes the
// set's, brackets included. 0: the bracket is never closed.
bool in_set(std::string_view pattern, char c, size_t& length) {
  size_t i = 1;
  bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) i++;
  bool found = false;
  // A ']' that stands first is one of the set.
  for (size_t first = i; i < pattern.size(); i++) {
    if (pattern[i] == ']' && i > first) {
      length = i + 1;
      return found != negated;
    }
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      found |= pattern[i] <= c && c <= pattern[i + 2];
      i += 2;
    } else {
      found |= pattern[i] == c;
    }
  }
  length = 0;
  return false;
}

// Whether the pattern's first element, which is not '*', fits `c`; `length` becomes the element's.
bool fits_one(std::string_view pattern, char c, size_t& length) {
  if (pattern[0] == '[') {
    bool fits = in_set(pattern, c, length);
    if (length > 0) return fits;
  }
  length = 1;
  return pattern[0] == c || pattern[0] == '?';
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0;
  // Where to go on if what follows the last '*' does not fit: the '*' takes one character more.
  // Only the last one need be reconsidered, so the work is bounded by the product of the lengths.
  size_t after_star = pattern.npos, star_end = 0;
  while (n < name.size() || p < pattern.size()) {
    size_t length = 0;
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      star_end = n;
    } else if (p < pattern.size() && n < name.size() &&
               fits_one(pattern.substr(p), name[n], length)) {
      p += length;
      n++;
    } else {
      if (after_star == pattern.npos || star_end == name.size()) return false;
      p = after_star;
      n = ++star_end;
    }
  }
  return true;
}

bool glob_match_any(std::span<const std::string> patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [name](const std::string& pattern) { return glob_match(pattern, name); });
}

std::vector<std::string> split_patterns(std::string_view list) {
  std::vector<std::string> patterns;
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    std::string_view pattern = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    constexpr std::string_view kBlanks = " \t\n";
    size_t begin = pattern.find_first_not_of(kBlanks);
    if (begin == pattern.npos) continue;
    patterns.emplace_back(pattern.substr(begin, pattern.find_last_not_of(kBlanks) + 1 - begin));
  }
  return patterns;
}

}  // namespace cudabpf
