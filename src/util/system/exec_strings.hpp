// Strings as exec and posix_spawn take them.
#pragma once

#include <string>
#include <vector>

namespace cudabpf {

// Pointers to these strings, and a null pointer.
inline std::vector<char*> exec_strings(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace cudabpf
