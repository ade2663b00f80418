// What memory each process holds, as far as the trace has seen it: the size of what is freed, which
// side of a copy an address is on, on which GPU, and how much it is in all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

#include "correlate/blocks.hpp"
#include "correlate/bounds.hpp"
#include "cudabpf/event.hpp"
#include "cudabpf/memory_figures.hpp"

namespace cudabpf {

class Allocations {
 public:
  // Which functions' calls must be seen for what is concluded from them.
  static bool follows(const Function& function);  // with their results: for all of it
  static bool frees(const Function& function);    // to know that a block is there still
  struct Seen {
    bool all = true, frees = true;
  };

  Allocations(Seen seen, Bounds& bounds) : seen_(seen), bounds_(bounds) {}

  // Follows a memory call that succeeded, and completes its details (the size of a free).
  void follow(std::uint32_t pid, const Function& function, Details& details);
  // Follows any other call that succeeded and returned addresses (cuModuleGetGlobal).
  void follow_addresses(std::uint32_t pid, const Function& function,
                        std::span<const std::uint64_t> outs);

  // Finds the direction of a copy between addresses that may be on either side. Leaves it alone
  // where that cannot be known.
  void infer_direction(std::uint32_t pid, Details& details) const;
  // On which GPU each end lies of a copy between two GPUs, and of any that names two contexts. Not
  // for one whose rows a struct describes: it may reach over more than its bytes.
  void find_devices(std::uint32_t pid, const Function& function, Details& details) const;

  // A process began under the trace's eyes: what was never seen allocated is ordinary memory.
  void process_began(std::uint32_t pid) { processes_[pid].all_seen = seen_.all; }
  // Some call of the process is missing from the trace, so allocations may be as well.
  void calls_lost(std::uint32_t pid);
  // What was allocated may be gone: a context was destroyed, or a free has not been seen to return.
  void context_destroyed(std::uint32_t pid);
  void perhaps_freed(std::uint32_t pid, const Function& function, const Details& details);
  void process_gone(std::uint32_t pid);

  // What cuMem… functions of all processes gave and took back. Registered and mapped memory, which
  // was there before, is in no figure.
  const MemoryByKind& figures() const { return figures_; }

 private:
  struct OfProcess {
    Blocks blocks;   // by address
    Blocks handles;  // of physical memory, which cuMemMap gives an address: by handle
    std::uint32_t losses = 0;
    bool all_seen = false;
    std::size_t size() const { return blocks.size() + handles.size(); }
  };

  MemoryFigures& figures(MemoryKind kind) { return figures_[static_cast<std::size_t>(kind)]; }
  Block block_of(OfProcess& process, const Function& function, const Details& details);
  void keep(OfProcess& process, Blocks& blocks, const Block& block);
  bool make_room(OfProcess& process);
  void forget(Blocks& blocks, std::uint64_t address, std::uint64_t size);
  void drop(const Block& block);
  void free(OfProcess& process, Blocks& blocks, std::uint64_t address, Details* told);
  void follow_handle(OfProcess& process, const Function& function, const Details& details);

  // Nothing was lost since it was allocated that could have freed it.
  static bool is_certain(const OfProcess& process, const Block& block);
  // The device of all of so many bytes.
  static std::optional<std::int32_t> device_of(const OfProcess& process, std::uint64_t address,
                                               std::uint64_t size);
  static std::optional<Block::Side> side_of(const OfProcess& process, std::uint64_t address);

  const Seen seen_;
  Bounds& bounds_;
  std::unordered_map<std::uint32_t, OfProcess> processes_;
  std::size_t kept_ = 0;  // blocks, of all processes
  MemoryByKind figures_{};
};

}  // namespace cudabpf
