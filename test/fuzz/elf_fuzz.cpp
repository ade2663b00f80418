// Libraries come from any process's file system: none may make the reader crash, hang or use too
// much memory.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "collect/probe_arguments.hpp"
#include "util/elf/elf.hpp"

using namespace cudabpf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = std::as_bytes(std::span(data, size));
  Result<elf::Image> image = elf::Image::parse(elf::bytes_in_memory(bytes));
  if (!image) {
    if (image.error().message.empty()) abort();
    return 0;
  }
  if (image->build_id().size() > 128 || image->soname().size() > size) abort();
  for (const char* prefix : {"", "cu"}) {
    size_t name_bytes = 0;
    for (const elf::Function& function : image->functions(prefix)) {
      name_bytes += function.name.size();
      // A uprobe goes to this offset, so it lies in the file and the code there can be read.
      if (function.offset >= size) abort();
      auto code = image->code(function);
      if (code.empty() || code.size() > size - function.offset) abort();
      if (std::memcmp(code.data(), data + function.offset, code.size()) != 0) abort();
    }
    if (name_bytes > size) abort();
  }
  for (const elf::StaticProbe& probe : image->static_probes("")) {
    // A uprobe goes there, and the kernel counts up and down here.
    if (probe.offset >= size || probe.semaphore >= size) abort();
    for (size_t count = 0; count < 5; count++) {
      auto reads = reads_of_probe(image->machine(), probe.arguments, count);
      if (reads && reads->size() != count) abort();
    }
  }
  return 0;
}
