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
#include <unordered_set>

#include "correlate/bounds.hpp"
#include "cudabpf/event.hpp"

namespace cudabpf {

class KernelNames {
 public:
  explicit KernelNames(Bounds& bounds) : bounds_(bounds) {}

  // What a handle belongs to, and so when it may be reused: a CUfunction goes with its module and
  // its context, a CUkernel with its library.
  struct Owner {
    std::uint64_t handle = 0;  // the module or library
    bool in_context = false;
  };

  // A name as a record holds it. If it was cut, only its beginning is known.
  struct ReadName {
    std::string_view text;
    bool cut = false;
  };

  // A call resolved `name` to `handle` at `ts` (as all times here, the records').
  void learned(std::uint32_t pid, std::uint64_t handle, Owner owner, ReadName name,
               std::uint64_t ts);
  // A call turned a kernel's handle into that of a function in the current context.
  void learned_alias(std::uint32_t pid, std::uint64_t handle, std::uint64_t of, std::uint64_t ts);
  // The kernel side read `name` from `handle`; empty: there was nothing to read.
  void read_from_handle(std::uint32_t pid, std::uint64_t handle, ReadName name, std::uint64_t ts);

  // A handle means a kernel whose name is not known.
  void forget_handle(std::uint32_t pid, std::uint64_t handle);
  // What was known before `began`, when the call that ended it began, may be reused. What was
  // learned since, by other threads, is true of what came after.
  void owner_unloaded(std::uint32_t pid, std::uint64_t owner, std::uint64_t began);
  void context_destroyed(std::uint32_t pid, std::uint64_t began);
  void forget_handles(std::uint32_t pid);  // one of the two, not known which
  void process_gone(std::uint32_t pid);

  // There are as many names as are kept: those that no handle has and nobody uses may go. A name
  // for which there is no room then is not known.
  bool want_room() const;
  void forget_unused(const std::unordered_set<const KernelName*>& used);

  const KernelName* find(std::uint32_t pid, std::uint64_t handle) const;

  // How the two sides agreed, for the trace's end and for tests.
  std::uint64_t confirmed() const { return confirmed_; }
  std::uint64_t contradicted() const { return contradicted_; }

 private:
  struct Entry {
    const KernelName* name = nullptr;
    Owner owner;
    bool learned = false;
    std::uint64_t ts = 0;
  };
  struct ProcessNames {
    std::unordered_map<std::uint64_t, Entry> handles;
    std::uint64_t confirmed = 0;
    std::uint64_t contradicted = 0;
    std::size_t size() const { return handles.size(); }
  };

  const KernelName* intern(ReadName name, bool from_handle);
  void keep(ProcessNames& process, std::uint64_t handle, const Entry& entry);
  void forget(ProcessNames& process, std::uint64_t handle);
  template <typename Gone>
  void forget_if(ProcessNames& process, Gone&& gone);
  bool trusts_handles(const ProcessNames& process) const;

  std::unordered_map<std::uint32_t, ProcessNames> processes_;
  std::size_t handles_ = 0;  // of all processes
  // Launches repeat few names many times: each is demangled and quoted once. Two maps, by source;
  // the keys are the names' own texts.
  std::unordered_map<std::string_view, std::unique_ptr<KernelName>> names_[2];
  std::size_t name_bytes_ = 0;
  std::uint64_t refused_ = 0;  // names, since those that were not used have gone
  Bounds& bounds_;
  std::uint64_t confirmed_ = 0;
  std::uint64_t contradicted_ = 0;
};

// Could this be the linker name of a kernel? PTX identifiers are letters, digits, _, $ and %.
bool plausible_kernel_name(std::string_view name);

}  // namespace cudabpf
