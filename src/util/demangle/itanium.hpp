// Demangles C++ names with bounded work, for names that abi::__cxa_demangle must not or cannot
// take: its output grows without bound on a crafted name (each of 300 bytes may double it), and it
// refuses names of more than 1024 characters, which CUTLASS kernels have.
//
// libiberty, from which c++filt is made, cannot take its place. Without its recursion limit it
// agrees with c++filt on all of 157,760 symbols of a system's libraries, but it keeps its tables on
// the stack, where no callback can cut them: on a stack of 8 MiB a name of 5,774 bytes (700
// templates, 750 times "RT_"), which this reads in two milliseconds, crashed it, and so did any
// name of 120 KB. With the limit it refuses the names that the C++ library refuses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cudabpf::itanium {

// The same as c++filt prints. Nothing if the name is not a mangled function or variable, would grow
// beyond 64 KiB, or uses what kernel names never do: expressions, special names, vendor types.
std::optional<std::string> demangle(std::string_view mangled);

}  // namespace cudabpf::itanium
