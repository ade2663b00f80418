// An interval of `cudabpf top` as text: for people, and as JSON. Pure.
#pragma once

#include <string>

#include "sink/top_model.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf {

std::string top_page(const TopInterval& interval, const Terminal& terminal);
// One line.
std::string top_json(const TopInterval& interval);

}  // namespace cudabpf
