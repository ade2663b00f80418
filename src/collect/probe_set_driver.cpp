// The probes on what is asked of the NVIDIA driver.
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "collect/driver_functions.hpp"
#include "collect/probe_set.hpp"
#include "collect/skeleton.hpp"
#include "collect/tracepoints.hpp"

namespace cudabpf {

Result<> ProbeSet::attach_driver(const Features& features, const DriverDevices& devices,
                                 const DriverVersion& version) {
  for (unsigned number = 0; number < CB_IOCTL_PLANS; number++) {
    auto narrow = static_cast<std::uint8_t>(number);
    skeleton_->bss->escape_plans[number] = escape_plan(narrow, version);
    skeleton_->bss->uvm_plans[number] = uvm_plan(narrow, version);
  }
  set_driver_devices(devices);
  return features.has(feature::DRIVER_KPROBES) ? attach_driver_functions()
                                               : attach_driver_system_calls();
}

Result<> ProbeSet::attach_driver_functions() {
  for (const DriverFunction& function : driver_functions()) {
    LIBBPF_OPTS(bpf_kprobe_opts, options);
    options.bpf_cookie = function.op;
    // Returns first: an operation that begins in between is then at least seen to end.
    for (bool at_return : {true, false}) {
      options.retprobe = at_return;
      bpf_link* link = bpf_program__attach_kprobe_opts(
          at_return ? skeleton_->progs.driver_function_return : skeleton_->progs.driver_function,
          function.symbol.c_str(), &options);
      if (!link) return errno_error("attaching to the kernel's function " + function.symbol);
      driver_links_.push_back(link);
    }
  }
  return ok();
}

Result<> ProbeSet::attach_driver_system_calls() {
  const auto& programs = skeleton_->progs;
  const std::pair<const char*, bpf_program*> system_calls[] = {
      {"ioctl", programs.driver_ioctl}, {"openat", programs.driver_open},
      {"close", programs.driver_close}, {"mmap", programs.driver_mmap},
      {"ppoll", programs.driver_poll},  {"poll", programs.driver_poll}};
  for (auto [name, program] : system_calls)
    for (bool at_exit : {true, false}) {
      auto link = attach_tracepoint(at_exit ? programs.driver_exit : program, "syscalls",
                                    std::string(at_exit ? "sys_exit_" : "sys_enter_") + name);
      if (!link && errno == ENOENT && program == programs.driver_poll) continue;  // arm64: no poll
      if (!link) return link.error();
      driver_links_.push_back(*link);
    }
  return ok();
}

void ProbeSet::set_driver_devices(const DriverDevices& devices) {
  auto list = devices.for_kernel_side();
  std::copy(list.begin(), list.end(), skeleton_->bss->driver_devices);
}

}  // namespace cudabpf
