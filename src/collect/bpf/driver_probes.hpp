// The probes that see operations on the NVIDIA driver's devices.
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

  // Marks the programs that attach() will need; the skeleton is not loaded yet.
  static void choose_programs(cudabpf_bpf& skeleton, const Features& features);

  // Attaches in the first way that `features` offers and that works; returns its name.
  Result<std::string> attach(const Features& features);
  // The version determines how ioctls are read.
  void set_version(const DriverVersion& version);
  // Attaches to the driver's own tracepoint for GPU errors, which some versions lack.
  Result<> attach_xid();
  // How often the kernel should have run a program and did not.
  std::uint64_t skipped() const;
  void set_devices(const DriverDevices& devices);
  void detach();
  // Removes the probes that would keep the driver's modules from being unloaded.
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
  struct Copy {  // of a program, for one function; libbpf does not know it
    Fd program, link;
  };
  std::vector<Copy> copies_;
  std::uint64_t skipped_before_ = 0;  // by copies that are gone
  Link xid_link_;
};

}  // namespace cudabpf
