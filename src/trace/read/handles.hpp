// Handles of CUDA objects in the arguments of lines.
#pragma once

#include <cstdint>
#include <string_view>

namespace cudabpf::analyze {

// The handle in an argument; 0: there is none. Quotes within strings are escaped, so the key cannot
// be found inside one.
std::uint64_t handle_in(std::string_view args, std::string_view name);

}  // namespace cudabpf::analyze
