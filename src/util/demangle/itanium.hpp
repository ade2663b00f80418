// Demangles C++ names with bounded work, for names that abi::__cxa_demangle must not or cannot
// take: its output grows without bound on a crafted name (each of 300 bytes may double it), and it
// refuses names of more than 1024 characters, which CUTLASS kernels have.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cudabpf::itanium {

// The same as c++filt prints. Nothing if the name is not a mangled function or variable, would grow
// beyond 64 KiB, or uses what kernel names never do: expressions, special names, vendor types.
std::optional<std::string> demangle(std::string_view mangled);

}  // namespace cudabpf::itanium
