// Breaks a text into lines.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace cudabpf {

// Lines of at most `columns`, broken between words, but not between a number and its unit. A word
// that is longer than a line is broken, too.
std::vector<std::string_view> wrapped(std::string_view text, std::size_t columns);

}  // namespace cudabpf
