// In the place of src/replay/gpu/cuda_library.cpp: a static program has a libc of its own, beside
// which a library of the machine's would not work.
#include "replay/gpu/driver.hpp"

namespace cudabpf::replay {

Result<Driver> Driver::load() {
  return Error{"the static binary of cudabpf cannot load the CUDA driver",
               "use the other one; --list works with this one, too"};
}

}  // namespace cudabpf::replay
