// C++ names as people read them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cudabpf {

// "_Z3fooi" -> "foo(int)". Text that is not mangled, is too long to be a name, or was made to grow
// without bound comes back unchanged.
std::string demangle(std::string_view mangled);

// A demangled name as a table shows it: without return type, namespaces, template arguments and
// parameters. "void at::native::foo<4, std::array<char*, 3ul> >(int)" -> "foo". A name that is
// still mangled yields the function's name. Text that is not a C++ signature comes back whole.
std::string short_name(std::string_view full);

// "void foo<4, std::array<char*, 3ul> >(int)" -> "4", "std::array<char*, 3ul>".
std::vector<std::string_view> template_arguments(std::string_view full);

}  // namespace cudabpf
