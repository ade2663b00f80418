#include "util/text/glob.hpp"

#include <fnmatch.h>

#include <algorithm>

namespace cudabpf {

bool glob_match(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

bool glob_match_any(std::span<const std::string> patterns, std::string_view name) {
  return std::any_of(
      patterns.begin(), patterns.end(),
      [name = std::string(name)](const std::string& pattern) { return glob_match(pattern, name); });
}

std::vector<std::string> split_patterns(std::string_view list) {
  std::vector<std::string> patterns;
  while (!list.empty()) {
    std::size_t comma = std::min(list.find(','), list.size());
    std::string_view pattern = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    constexpr std::string_view BLANKS = " \t\n";
    std::size_t begin = pattern.find_first_not_of(BLANKS);
    if (begin == pattern.npos) continue;
    patterns.emplace_back(pattern.substr(begin, pattern.find_last_not_of(BLANKS) + 1 - begin));
  }
  return patterns;
}

}  // namespace cudabpf
