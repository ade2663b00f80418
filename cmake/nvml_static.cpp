// In the place of src/collect/gpu/nvml_library.cpp: a static program has a libc of its own, beside
// which a library of the machine's would not work.
#include "collect/gpu/nvml.hpp"

namespace cudabpf::nvml {

cudabpf::Result<Functions> load() { return Error{"the static binary of cudabpf cannot load NVML"}; }

}  // namespace cudabpf::nvml
