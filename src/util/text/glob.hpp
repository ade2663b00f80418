// Name patterns, for --only and --exclude.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudabpf {

// Shell patterns over the whole name: * any run, ? one character, [abc] [a-z] [!a-z] one of a set.
// A '[' that is never closed stands for itself.
bool glob_match(std::string_view pattern, std::string_view name);
bool glob_match_any(std::span<const std::string> patterns, std::string_view name);

// "cuMem*, cuLaunch*" -> {"cuMem*", "cuLaunch*"}: blanks around and empty patterns are dropped.
std::vector<std::string> split_patterns(std::string_view list);

}  // namespace cudabpf
