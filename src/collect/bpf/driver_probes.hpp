// The probes on what is asked of the NVIDIA driver.
#pragma once

#include <string>
#include <vector>

#include "collect/bpf/features.hpp"
#include "collect/bpf/link.hpp"
#include "collect/driver_devices.hpp"
#include "cudabpf/driver.hpp"
#include "util/result.hpp"
#include "util/system/fd.hpp"

struct bpf_program;
struct cudabpf_bpf;

namespace cudabpf {

class KernelBtf;
struct DriverFunction;

class DriverProbes {
 public:
  explicit DriverProbes(cudabpf_bpf& skeleton) : skeleton_(skeleton) {}
  ~DriverProbes() { detach(); }
  DriverProbes(const DriverProbes&) = delete;
  DriverProbes& operator=(const DriverProbes&) = delete;

  // Marks the programs that attaching takes; the skeleton is not loaded yet.
  static void choose_programs(cudabpf_bpf& skeleton, const Features& features);

  // In the first of the ways that `features` has and that works; the answer is its name.
  Result<std::string> attach(const Features& features);
  // How ioctls are read depends on it.
  void set_version(const DriverVersion& version);
  // The driver's own word on errors of GPUs. It may not have one.
  Result<> attach_xid();
  // How often the kernel did not run a program where it should have.
  std::uint64_t skipped() const;
  void set_devices(const DriverDevices& devices);
  void detach();
  // Takes away those probes that keep the driver's modules from being unloaded.
  void release_modules();

 private:
  Result<> attach_by_fentry(const Features& features);
  Result<> attach_by_kprobes(const Features& features);
  enum class SystemCalls { all, polls };
  Result<> attach_system_calls(SystemCalls which);
  Result<> attach_fentry(KernelBtf& btf, const DriverFunction& function);
  Result<> attach_kprobe(const DriverFunction& function);

  cudabpf_bpf& skeleton_;
  std::vector<Link> links_;
  struct Copy {  // of a program, for one function; libbpf knows nothing of it
    Fd program, link;
  };
  std::vector<Copy> copies_;
  std::uint64_t skipped_before_ = 0;  // by copies that are gone
  Link xid_link_;
};

}  // namespace cudabpf
