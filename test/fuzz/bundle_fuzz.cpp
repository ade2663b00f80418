// A capture folder comes from anybody: whatever its manifest and its tape hold, reading them must
// not crash, hang or take much memory, and what is accepted must be written and read again as it
// is.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "bundle/tape.hpp"

using namespace cudabpf;

// The manifest, and behind an empty line the tape.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::size_t end = text.find("\n\n");
  auto manifest = bundle::manifest_in(text.substr(0, end));
  if (!manifest) {
    if (manifest.error().message.empty()) abort();
    return 0;
  }
  auto again = bundle::manifest_in(bundle::manifest_text(*manifest));
  if (!again || *again != *manifest) abort();
  std::string_view tape = end == text.npos ? "" : text.substr(end + 2);
  while (!tape.empty()) {
    std::string_view line = tape.substr(0, tape.find('\n'));
    tape.remove_prefix(std::min(tape.size(), line.size() + 1));
    auto operation = bundle::operation_in(line, *manifest);
    if (!operation) continue;
    auto same = bundle::operation_in(bundle::line_of(*operation), *manifest);
    if (!same || *same != *operation) abort();
  }
  return 0;
}
