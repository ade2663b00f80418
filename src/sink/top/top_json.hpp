// An interval of `cudabpf top` as JSON, for programs: one line. Pure.
#pragma once

#include <string>

#include "sink/top/top_model.hpp"

namespace cudabpf {

std::string top_json(const TopInterval& interval);

}  // namespace cudabpf
