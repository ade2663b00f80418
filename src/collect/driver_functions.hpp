// The functions of the NVIDIA driver at which what is asked of it is seen.
#pragma once

#include <string>
#include <vector>

#include "cudabpf/abi.h"

namespace cudabpf {

struct DriverFunction {
  std::string symbol;  // "nvidia:nvidia_unlocked_ioctl"
  abi::cb_driver_op op;
};

// As this kernel has them; none unless both the driver's modules have all that is looked for.
std::vector<DriverFunction> driver_functions();

}  // namespace cudabpf
