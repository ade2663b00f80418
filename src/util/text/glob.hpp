// Name patterns, for --only and --exclude.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudabpf {

// Shell patterns over the whole name, as fnmatch(3) has them: * any run, ? one character, [abc]
// [a-z] [!a-z] one of a set. A '[' that is never closed stands for itself, and so does a '\\'.
bool glob_match(const std::string& pattern, const std::string& name);
bool glob_match_any(std::span<const std::string> patterns, std::string_view name);

// "cuMem*, cuLaunch*" -> {"cuMem*", "cuLaunch*"}: drops surrounding blanks and empty patterns.
std::vector<std::string> split_patterns(std::string_view list);

}  // namespace cudabpf
