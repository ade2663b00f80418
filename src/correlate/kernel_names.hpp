// Which kernel a handle means, in each process.
//
// Names come from two sides: from the calls that resolve them (cuModuleGetFunction and its kin),
// and from the handle itself, where the kernel side read the pointer that driver 580 keeps at
// offset 8. The second side is only believed as far as the first has confirmed it, or, where there
// is nothing to compare with, as far as it looks like a kernel's name: a wrong name is worse than
// none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cudabpf/event.hpp"

namespace cudabpf {

class KernelNames {
 public:
  // A call resolved `name` to `handle`. `owner` is the module or library; 0 for a function that
  // belongs to a kernel's context.
  void learned(std::uint32_t pid, std::uint64_t handle, std::uint64_t owner, std::string_view name);
  // A call turned one handle into another of the same kernel (cuKernelGetFunction).
  void learned_alias(std::uint32_t pid, std::uint64_t handle, std::uint64_t of);
  // The kernel side read `name` from `handle`.
  void read_from_handle(std::uint32_t pid, std::uint64_t handle, std::string_view name);

  void owner_unloaded(std::uint32_t pid, std::uint64_t owner);
  void context_destroyed(std::uint32_t pid);
  void process_gone(std::uint32_t pid) { processes_.erase(pid); }

  const KernelName* find(std::uint32_t pid, std::uint64_t handle) const;

  // How the two sides agreed, for the trace's end and for tests.
  std::uint64_t confirmed() const { return confirmed_; }
  std::uint64_t contradicted() const { return contradicted_; }

 private:
  struct Entry {
    const KernelName* name = nullptr;
    std::uint64_t owner = 0;
    bool learned = false;
    bool dies_with_context = false;
  };
  struct ProcessNames {
    std::unordered_map<std::uint64_t, Entry> handles;
    std::uint64_t confirmed = 0;
    std::uint64_t contradicted = 0;
  };

  const KernelName* intern(std::string_view mangled, bool from_handle);
  bool trusts_handles(const ProcessNames& process) const;

  std::unordered_map<std::uint32_t, ProcessNames> processes_;
  // Launches repeat few names many times: each is demangled and quoted once. Two maps, by source.
  std::unordered_map<std::string, std::unique_ptr<KernelName>> names_[2];
  std::uint64_t confirmed_ = 0;
  std::uint64_t contradicted_ = 0;
};

// Could this be the linker name of a kernel? PTX identifiers are letters, digits, _, $ and %.
bool plausible_kernel_name(std::string_view name);

}  // namespace cudabpf
