// What pointing at a bar shows of a picture: a call exactly; several, how many they are, from when
// to when, how long they took, and which functions and kernels they mostly were. Likewise of what
// GPUs did.
#pragma once

#include <string>

#include "analyze/timeline/timeline.hpp"

namespace cudabpf::analyze {

enum class BarsOf : std::uint8_t { thread, driver, stream, gpu };
std::string tooltip(const Timeline& timeline, const Bar& bar, BarsOf of);
// For a bar of this queue.
std::string gpu_tooltip(const Timeline& timeline, const Bar& bar, std::size_t queue);

}  // namespace cudabpf::analyze
