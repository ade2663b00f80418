// What the mouse tells of a bar of a picture: a call exactly; several, how many they are, from when
// to when, how long they took, and which functions and kernels they mostly were.
#pragma once

#include <string>

#include "analyze/timeline/timeline.hpp"

namespace cudabpf::analyze {

enum class BarsOf : std::uint8_t { thread, driver, stream };
std::string tooltip(const Timeline& timeline, const Bar& bar, BarsOf of);

}  // namespace cudabpf::analyze
