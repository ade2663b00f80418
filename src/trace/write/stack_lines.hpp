// The lines of the program's Python stacks.
#pragma once

#include <cstdint>
#include <string>

#include "cudabpf/event.hpp"

namespace cudabpf {

// What a stack's number stands for, before the first line that has it. `ts`: that line's.
std::string stack_line(const PythonStack& stack, std::uint64_t ts);
std::string python_line(const PythonFound& found);

}  // namespace cudabpf
