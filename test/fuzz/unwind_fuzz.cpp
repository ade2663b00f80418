// Tables by which frames are unwound come from any process's files: none may make cudabpf read
// beyond them or beyond the stack, or follow them for ever. The input is what lies at AT: a header,
// its table, and the entries.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "cudabpf/unwind.h"

using namespace cudabpf::unwind;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t AT = 0x5000, CODE = 0x1000, STACK = 0x8000;
  std::array<uint64_t, 16> words{};
  for (size_t i = 0; i < words.size(); i++) words[i] = 1000 + i;
  cu_memory tables{data, AT, size};
  cu_memory stack{reinterpret_cast<const uint8_t*>(words.data()), STACK, sizeof(words)};
  for (uint64_t ip : {CODE + 1, CODE + 4, CODE + 0x20, uint64_t{1}, ~uint64_t{0}})
    for (bool bp_known : {true, false}) {
      cu_frame frame{ip, STACK, STACK + 16, bp_known};
      if (!cu_step(&tables, AT, &stack, &frame)) continue;
      // One of the stack's words, below the frame that was found.
      if (frame.sp <= STACK || frame.sp > STACK + sizeof(words) || frame.sp % 8) abort();
      if (frame.ip != words[(frame.sp - STACK) / 8 - 1]) abort();
    }
  return 0;
}
