// Kernels that are not the program's, for measuring. The driver compiles them for the GPU.
#pragma once

#include "replay/gpu/driver.hpp"

namespace cudabpf::replay {

struct OwnKernels {
  Handle read_memory = nullptr;  // (address, bytes); null: this GPU does not take it
  Handle nothing = nullptr;      // (); null, too

  static OwnKernels load(const Driver& driver);
};

}  // namespace cudabpf::replay
