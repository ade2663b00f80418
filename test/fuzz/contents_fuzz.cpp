// What the process that reads libraries answers may be made by a file that has taken it over: none
// of it may make this one crash, hang, swell, or show what no name can be.
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "util/elf/elf_contents.hpp"

using namespace cudabpf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t FILE_SIZE = 1 << 20;
  auto contents = elf::decode({reinterpret_cast<const char*>(data), size}, FILE_SIZE);
  if (!contents) {
    if (contents.error().message.empty()) abort();
    return 0;
  }
  for (const elf::Function& function : contents->functions) {
    if (function.offset >= FILE_SIZE || function.name.empty()) abort();
    for (unsigned char c : function.name)
      if (!std::isprint(c) || c == '"') abort();
  }
  // What is believed is told again in the same words.
  if (elf::encode(contents).size() > size) abort();
  return 0;
}
