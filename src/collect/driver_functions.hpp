// The NVIDIA driver's functions at which operations on its devices are seen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cudabpf/abi.h"
#include "util/system/kernel_symbols.hpp"

namespace cudabpf {

struct DriverFunction {
  std::string module;
  std::string name;  // as in /proc/kallsyms: "nvidia_unlocked_ioctl", perhaps with ".isra.0"
  abi::cb_driver_op op;
  bool needed = true;  // without it some operations would not be seen
};

// The functions in a kernel with these symbols; none unless the driver's modules have all that are
// needed.
std::vector<DriverFunction> choose_driver_functions(const KernelSymbols& symbols);

// The functions in this kernel. They are looked up once, and again when a module has been loaded,
// since the kernel's list of symbols is long. Only one thread may call this.
const std::vector<DriverFunction>& driver_functions();

// The kernel's own functions behind poll(2) and ppoll(2).
std::vector<std::string> poll_functions();

// Which of the driver's modules are loaded; the value changes even if one is reloaded.
std::vector<std::uint64_t> driver_modules();

}  // namespace cudabpf
