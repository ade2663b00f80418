// What pointing at a bar of a picture shows: one call exactly; of several, how many there are, from
// when to when, how long they took, and their main functions and kernels. The same for what GPUs
// did.
#pragma once

#include <string>

#include "analyze/timeline/timeline.hpp"

namespace cudabpf::analyze {

enum class BarsOf : std::uint8_t { thread, driver, stream, gpu };
std::string tooltip(const Timeline& timeline, const Bar& bar, BarsOf of);
// For a bar of this queue.
std::string gpu_tooltip(const Timeline& timeline, const Bar& bar, std::size_t queue);

}  // namespace cudabpf::analyze
