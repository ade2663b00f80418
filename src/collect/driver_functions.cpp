#include "collect/driver_functions.hpp"

#include <sys/stat.h>

#include <iterator>
#include <utility>

namespace cudabpf {

namespace {

constexpr const char* MODULES[] = {"nvidia", "nvidia_uvm", "nvidia_modeset"};

enum class Need : std::uint8_t {
  always,
  if_there,             // its module may not be loaded, or some versions lack it
  unless_there_is_one,  // the front end may have it already
};

struct Wanted {
  const char* module;
  abi::cb_driver_op op;
  Need need;
  std::vector<std::string> names;  // they changed between versions: the first found is used
};

// Up to 535 a front end came first, for nvidia-modeset too; since 545 nvidia.c implements the
// device's operations itself. Functions outside the driver's kernel-open part cannot be probed.
const std::vector<Wanted>& wanted() {
  using enum Need;
  static const std::vector<Wanted> WANTED = {
      {"nvidia",
       abi::CB_IOCTL,
       always,
       {"nvidia_frontend_unlocked_ioctl", "nvidia_unlocked_ioctl"}},
      {"nvidia", abi::CB_OPEN, always, {"nvidia_frontend_open", "nvidia_open"}},
      {"nvidia", abi::CB_CLOSE, always, {"nvidia_frontend_close", "nvidia_close"}},
      {"nvidia", abi::CB_MMAP, always, {"nvidia_frontend_mmap", "nvidia_mmap"}},
      {"nvidia", abi::CB_FAULT, if_there, {"nvidia_fault"}},
      {"nvidia", abi::CB_OPEN, if_there, {"nv_cap_drv_open"}},
      {"nvidia", abi::CB_CLOSE, if_there, {"nv_cap_drv_release"}},
      {"nvidia", abi::CB_ISR, if_there, {"nvidia_isr"}},
      {"nvidia", abi::CB_ISR, if_there, {"nvidia_isr_msix"}},
      {"nvidia", abi::CB_BOTTOM_HALF, if_there, {"nvidia_isr_kthread_bh"}},
      {"nvidia", abi::CB_BOTTOM_HALF, if_there, {"nvidia_isr_msix_kthread_bh"}},
      {"nvidia_uvm", abi::CB_IOCTL, always, {"uvm_unlocked_ioctl_entry"}},
      {"nvidia_uvm", abi::CB_OPEN, always, {"uvm_open_entry"}},
      {"nvidia_uvm", abi::CB_CLOSE, always, {"uvm_release_entry"}},
      {"nvidia_uvm", abi::CB_MMAP, always, {"uvm_mmap_entry"}},
      {"nvidia_uvm", abi::CB_FAULT, if_there, {"uvm_vm_fault_entry", "uvm_vm_fault_wrapper_entry"}},
      {"nvidia_uvm",
       abi::CB_FAULT,
       if_there,
       {"uvm_vm_fault_sigbus_entry", "uvm_vm_fault_sigbus_wrapper_entry"}},
      {"nvidia_uvm",
       abi::CB_GPU_FAULTS,
       if_there,
       {"uvm_parent_gpu_service_replayable_faults", "uvm_gpu_service_replayable_faults"}},
      {"nvidia_uvm", abi::CB_IOCTL, if_there, {"uvm_tools_unlocked_ioctl_entry"}},
      {"nvidia_uvm", abi::CB_OPEN, if_there, {"uvm_tools_open_entry"}},
      {"nvidia_uvm", abi::CB_CLOSE, if_there, {"uvm_tools_release_entry"}},
      {"nvidia_modeset", abi::CB_IOCTL, unless_there_is_one, {"nvkms_unlocked_ioctl"}},
      {"nvidia_modeset", abi::CB_OPEN, unless_there_is_one, {"nvkms_open"}},
      {"nvidia_modeset", abi::CB_CLOSE, unless_there_is_one, {"nvkms_close"}},
  };
  return WANTED;
}

}  // namespace

std::vector<DriverFunction> choose_driver_functions(const KernelSymbols& symbols) {
  bool front_end = symbols.find("nvidia", {"nvidia_frontend_open"}).has_value();
  std::vector<DriverFunction> functions;
  for (const Wanted& function : wanted()) {
    if (function.need == Need::unless_there_is_one && front_end) continue;
    auto name = symbols.find(function.module, function.names);
    if (name)
      functions.push_back({function.module, *name, function.op, function.need == Need::always});
    else if (function.need == Need::always)
      return {};
  }
  return functions;
}

const std::vector<DriverFunction>& driver_functions() {
  static std::vector<std::uint64_t> known_of;
  static std::vector<DriverFunction> known;
  if (auto modules = driver_modules(); modules != known_of) {
    known_of = std::move(modules);
    known = choose_driver_functions(
        KernelSymbols::of_modules({std::begin(MODULES), std::end(MODULES)}));
  }
  return known;
}

std::vector<std::string> poll_functions() {
#if defined(__x86_64__)
  return {"__x64_sys_poll", "__x64_sys_ppoll"};
#elif defined(__aarch64__)
  return {"__arm64_sys_ppoll"};
#endif
}

std::vector<std::uint64_t> driver_modules() {
  std::vector<std::uint64_t> loaded;
  for (const char* module : MODULES) {
    struct stat folder {};
    bool there = stat((std::string("/sys/module/") + module).c_str(), &folder) == 0;
    loaded.push_back(there ? folder.st_ino : 0);
  }
  return loaded;
}

}  // namespace cudabpf
