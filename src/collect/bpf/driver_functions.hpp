// The functions of the NVIDIA driver at which what is asked of it is seen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cudabpf/abi.h"

namespace cudabpf {

struct DriverFunction {
  std::string module;
  std::string name;  // as /proc/kallsyms has it: "nvidia_unlocked_ioctl", maybe ".isra.0" after it
  abi::cb_driver_op op;
  bool needed = true;  // without it something that is asked would not be seen
};

// As this kernel has them; none unless the driver's modules have all that is needed. Looked for
// once, and again when a module has been loaded: the kernel's list of symbols is long. For one
// thread.
const std::vector<DriverFunction>& driver_functions();

// The kernel's own functions behind poll(2) and ppoll(2).
std::vector<std::string> poll_functions();

// Which modules of the driver are loaded: changes when one is loaded, also if it was before.
std::vector<std::uint64_t> driver_modules();

}  // namespace cudabpf
