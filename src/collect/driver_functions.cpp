#include "collect/driver_functions.hpp"

#include "util/kernel_symbols.hpp"

namespace cudabpf {

namespace {

struct Wanted {
  const char* module;
  abi::cb_driver_op op;
  std::vector<std::string> names;  // the first that is there; they changed over the versions
};

// Up to 535 a front end came first; since 545 nvidia.c has the device's operations itself.
// Functions that do not come from the kernel-open part of the driver cannot be probed.
const std::vector<Wanted>& wanted() {
  static const std::vector<Wanted> WANTED = {
      {"nvidia", abi::CB_IOCTL, {"nvidia_frontend_unlocked_ioctl", "nvidia_unlocked_ioctl"}},
      {"nvidia", abi::CB_OPEN, {"nvidia_frontend_open", "nvidia_open"}},
      {"nvidia", abi::CB_CLOSE, {"nvidia_frontend_close", "nvidia_close"}},
      {"nvidia", abi::CB_MMAP, {"nvidia_frontend_mmap", "nvidia_mmap"}},
      {"nvidia_uvm", abi::CB_IOCTL, {"uvm_unlocked_ioctl_entry"}},
      {"nvidia_uvm", abi::CB_OPEN, {"uvm_open_entry"}},
      {"nvidia_uvm", abi::CB_CLOSE, {"uvm_release_entry"}},
      {"nvidia_uvm", abi::CB_MMAP, {"uvm_mmap_entry"}},
  };
  return WANTED;
}

}  // namespace

std::vector<DriverFunction> driver_functions() {
  KernelSymbols symbols = KernelSymbols::of_modules({"nvidia", "nvidia_uvm"});
  std::vector<DriverFunction> functions;
  for (const Wanted& function : wanted()) {
    auto symbol = symbols.find(function.module, function.names);
    if (!symbol) return {};
    functions.push_back({*symbol, function.op});
  }
#if defined(__x86_64__)
  functions.push_back({"__x64_sys_poll", abi::CB_POLL});
  functions.push_back({"__x64_sys_ppoll", abi::CB_POLL});
#elif defined(__aarch64__)
  functions.push_back({"__arm64_sys_ppoll", abi::CB_POLL});
#endif
  return functions;
}

}  // namespace cudabpf
