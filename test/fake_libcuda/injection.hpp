// The library that CUDA_INJECTION64_PATH names: the first cuInit that succeeds loads it and calls
// its InitializeInjection, before it returns, as the real library does. What it cannot have seen is
// written down, so that tests know it.
#pragma once

#include <cstdint>

namespace fake {

// When a call began, as the library inside sees it.
enum class Injection : uint8_t {
  before,     // so it cannot have been seen; also if no library was loaded
  under_way,  // by another thread, or by the library itself: it is not known which
  after,
};

Injection injection();

// Once, for the thread that comes first; others wait, but for the library itself, which may call
// cuInit. Failures are ignored.
void load_injection();

void restart_injection();  // after fork: a child that it was not complete for begins again

}  // namespace fake
