// A file may take over the process that reads libraries, and forge its answer: no answer may make
// this process crash, hang, use too much memory, or show what cannot be a name.
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
  for (const elf::StaticProbe& probe : contents->probes) {
    if (probe.offset >= FILE_SIZE || probe.semaphore >= FILE_SIZE) abort();
    for (unsigned char c : probe.name + probe.arguments)
      if (!std::isprint(c) || c == '"') abort();
  }
  // An answer that is believed must be written again in the same words.
  if (elf::encode(contents).size() > size) abort();
  return 0;
}
