// The Python interpreter in a process, found from outside.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/python/program_memory.hpp"
#include "cudabpf/python_layout.h"
#include "util/system/procfs.hpp"

namespace cudabpf {

struct PythonInterpreter {
  std::string version;  // "3.11.2"
  std::string why_not;  // its frames are not followed; empty: they are
  abi::cb_python_layout at{};
  std::uint64_t runtime = 0;  // _PyRuntime
  std::uint64_t code_type = 0, text_type = 0, bytes_type = 0;
  std::uint64_t deallocates = 0;  // the function that is called when a code is freed
};

// Nothing: the process has none. `program`: the path of what it runs, as its mappings have it.
std::optional<PythonInterpreter> find_python(const ProgramMemory& memory,
                                             const std::vector<Mapping>& maps,
                                             std::string_view program);

}  // namespace cudabpf
