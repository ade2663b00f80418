// Kernel names come from the traced process: none may make the demangler crash, hang or use too
// much memory.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "util/demangle/demangle.hpp"
#include "util/demangle/itanium.hpp"

using namespace cudabpf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view name(reinterpret_cast<const char*>(data), size);
  std::optional<std::string> full = itanium::demangle(name);
  if (full && (full->empty() || full->size() > 64 * 1024)) abort();
  // A table shows something of every name, and never more than the name has.
  std::string of_mangled = short_name(name);
  if (of_mangled.empty() != name.empty()) abort();
  if (full && short_name(*full).size() > full->size() + 16) abort();
  return 0;
}
