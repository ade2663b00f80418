// What memory each process holds, as far as the trace has seen it: the size of what is freed, which
// side of a copy an address is on, and on which GPU.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

#include "cudabpf/event.hpp"

namespace cudabpf {

class Allocations {
 public:
  // Follows a memory call that succeeded, and completes its details (the size of a free).
  void follow(std::uint32_t pid, const Function& function, Details& details);
  // Follows any other call that succeeded and returned addresses (cuModuleGetGlobal).
  void follow_addresses(std::uint32_t pid, const Function& function,
                        std::span<const std::uint64_t> outs);

  // Finds the direction of a copy between addresses that may be on either side. Leaves it alone
  // where that cannot be known.
  void infer_direction(std::uint32_t pid, Details& details) const;
  // Whether what find_devices() tells depends on seeing this function's calls return.
  static bool follows(const Function& function);
  // Of a copy between two GPUs, and of any that names two contexts: on which GPU its ends lie. Of
  // one whose rows a struct describes it is not told: it may reach over more than its bytes.
  void find_devices(std::uint32_t pid, const Function& function, Details& details) const;

  // A process began under the trace's eyes: what was never seen allocated is ordinary memory.
  void process_began(std::uint32_t pid) { processes_[pid].all_seen = true; }
  // Some call of the process is missing from the trace, so allocations may be as well.
  void calls_lost(std::uint32_t pid);
  // What was allocated may be gone: a context was destroyed, or a free has not been seen to return.
  void context_destroyed(std::uint32_t pid);
  void perhaps_freed(std::uint32_t pid, const Function& function, const Details& details);
  void process_gone(std::uint32_t pid) { processes_.erase(pid); }

 private:
  enum class Side : std::uint8_t { host, device, either };  // either: managed memory
  struct Range {
    std::uint64_t size = 0;
    Side side = Side::device;
    std::optional<std::int32_t> device = {};
    std::uint64_t losses = 0;  // of the process, before it was allocated
    // May be gone. If it is freed after all, it was not.
    bool doubtful = false;
  };
  using Ranges = std::map<std::uint64_t, Range>;
  struct OfProcess {
    Ranges ranges;
    // Of physical memory, which cuMemMap gives an address.
    std::unordered_map<std::uint64_t, std::int32_t> device_of_handle;
    std::uint64_t losses = 0;
    bool all_seen = false;
  };

  static Ranges::const_iterator range_at(const Ranges& ranges, std::uint64_t address);
  static void erase_overlapping(Ranges& ranges, std::uint64_t address, std::uint64_t size);
  // Of all of so many bytes.
  static std::optional<std::int32_t> device_of(const OfProcess& process, std::uint64_t address,
                                               std::uint64_t size);
  static void add(OfProcess& process, const Function& function, const Details& details);
  static void follow_handle(OfProcess& process, const Function& function, const Details& details);
  static std::optional<Side> side_of(const OfProcess& process, std::uint64_t address);

  std::unordered_map<std::uint32_t, OfProcess> processes_;
};

}  // namespace cudabpf
