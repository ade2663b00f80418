// Guesses what was meant by a mistyped name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cudabpf {

// The name in `known` that differs from `typed` by a letter or two, or the only one that begins
// with it; empty if none is near.
std::string nearest(std::string_view typed, const std::vector<std::string>& known);

}  // namespace cudabpf
