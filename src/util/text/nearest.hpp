// What somebody meant who mistyped a name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cudabpf {

// The one of `known` that is `typed` but for a letter or two, or that alone begins with it; empty:
// none is near.
std::string nearest(std::string_view typed, const std::vector<std::string>& known);

}  // namespace cudabpf
