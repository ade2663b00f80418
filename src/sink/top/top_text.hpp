// An interval of `cudabpf top` as text for people. Pure.
#pragma once

#include <string>

#include "sink/top/top_history.hpp"
#include "sink/top/top_model.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf {

std::string top_text(const TopInterval& interval, const Terminal& terminal);
// After the last interval, where a page showed them: what was lost of all, and the books.
std::string top_end_text(const TopInterval& last, const TopHistory::Lost& lost,
                         const Terminal& terminal);

}  // namespace cudabpf
