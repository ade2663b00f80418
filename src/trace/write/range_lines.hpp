// The lines of the program's own ranges.
#pragma once

#include <cstdint>
#include <string>

#include "cudabpf/event.hpp"

namespace cudabpf {

std::string range_line(const NamedRange& range);
// What a range's number stands for, before the first line that has it. `ts`: that line's.
std::string range_name_line(const RangePath& path, std::uint64_t ts);

}  // namespace cudabpf
