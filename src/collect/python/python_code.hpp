// What a frame of a program's Python says, read from outside: its function, file and line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collect/python/program_memory.hpp"
#include "collect/python/python_interpreter.hpp"

namespace cudabpf {

struct PythonFrameText {
  std::string function, file;
  std::uint32_t line = 0;  // 0: it has none
  bool cut = false;        // a text is longer
};

// `instruction`: how far it lies behind the code object's address. Nothing: what is there is no
// code, or one whose parts are not what they should be.
std::optional<PythonFrameText> read_frame_text(const ProgramMemory& memory,
                                               const PythonInterpreter& python, std::uint64_t code,
                                               std::uint32_t instruction);

}  // namespace cudabpf
