// What the library inside keeps of a function's calls for a capture.
#pragma once

#include "cudabpf/cuda_api.hpp"
#include "cudabpf/taping.h"

namespace cudabpf {

abi::ci_taped taped_of(const Function& function);

}  // namespace cudabpf
