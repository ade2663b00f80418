// Demangles C++ names with bounded work, for the names that abi::__cxa_demangle must not or cannot
// take: the C++ library's demangler grows without bound on a name made for it (each of 300 bytes
// may double what is printed), and refuses names of more than 1024 characters, which CUTLASS
// kernels have.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cudabpf::itanium {

// What c++filt prints. Nothing if the name is not a mangled function or variable, would grow beyond
// 64 KiB, or uses what kernels' names do not: expressions, special names, vendor types.
std::optional<std::string> demangle(std::string_view mangled);

}  // namespace cudabpf::itanium
