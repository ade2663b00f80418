// Handles of CUDA's objects, as lines have them.
#pragma once

#include <cstdint>
#include <string_view>

namespace cudabpf::analyze {

// An argument that is a handle; 0: it is not there. Quotes within strings are escaped, so that the
// key cannot be found inside one.
std::uint64_t handle_in(std::string_view args, std::string_view name);

}  // namespace cudabpf::analyze
