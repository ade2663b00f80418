// What lies at the addresses of each process, as the trace has seen it: the size of what is freed,
// and on which side and on which GPU an address of a copy lies. LiveMemory counts how much there
// is: here a block stays, marked as doubtful, until something proves that it is gone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "correlate/calls/bounds.hpp"
#include "correlate/calls/learner.hpp"
#include "correlate/learners/blocks.hpp"
#include "cudabpf/event.hpp"
#include "util/hash.hpp"

namespace cudabpf {

class Allocations : public Learner {
 public:
  // The functions whose calls must be seen for the conclusions drawn here.
  static bool follows(const Function& function);  // with results: for all conclusions
  static bool frees(const Function& function);    // to know that a block still exists
  struct Seen {
    bool all = true, frees = true;
  };

  // `finds_ends`: the GPUs of a copy's ends can be known.
  Allocations(Seen seen, bool finds_ends, Bounds& bounds)
      : seen_(seen), finds_ends_(finds_ends), bounds_(bounds) {}

  // Most calls concern no memory.
  void began(ThreadId thread, Frame& frame) {
    Type type = frame.function->type;
    if (type == Type::memory) frame.freed = freeing(thread.pid, *frame.function, frame.details);
    if (frame.details.op == Op::unified) infer_direction(thread.pid, frame.details);
    if (type == Type::transfer && finds_ends_)
      find_devices(thread.pid, *frame.function, frame.details);
  }
  void ended(const CallStack& stack, Call& call) {
    const Function& function = *call.function;
    if (function.type == Type::memory)
      follow_memory(stack.top(), call);
    else if (!call.outs.empty() && call.has_return && call.result == 0)
      follow_addresses(call.pid, function, call.outs);
    if (function.names == NamesEffect::forget && function.type != Type::module && call.result == 0)
      context_destroyed(call.pid);
  }
  void orphaned(Call& call);
  // The trace saw the process begin, so memory that it never saw allocated is ordinary memory.
  void process_began(std::uint32_t pid) { processes_[pid].all_seen = seen_.all; }
  // Some call of the process is missing from the trace, so allocations may be missing too.
  void calls_lost(std::uint32_t pid);
  void process_gone(std::uint32_t pid);

 private:
  struct OfProcess {
    Blocks blocks;   // by address
    Blocks handles;  // of physical memory, which cuMemMap maps at an address: by handle
    std::uint32_t losses = 0;
    bool all_seen = false;
    std::size_t size() const { return blocks.size() + handles.size(); }
  };

  // A memory call begins: finds what it frees, if anything. Another thread may get the same address
  // before the call returns.
  std::optional<Freed> freeing(std::uint32_t pid, const Function& function, const Details& details);
  // The call that should free it failed.
  void stays(std::uint32_t pid, const Function& function, const Details& details);
  // Blocks may be gone: a context was destroyed, or a free was not seen to return.
  void context_destroyed(std::uint32_t pid);
  void perhaps_freed(std::uint32_t pid, const Function& function, const Details& details);
  void follow_memory(const Frame& frame, Call& call);
  // Follows a memory call that succeeded and completes its details (the size of a free).
  void follow(std::uint32_t pid, const Function& function, const std::optional<Freed>& freed,
              Details& details);
  // Follows any other call that succeeded and returned addresses (cuModuleGetGlobal).
  void follow_addresses(std::uint32_t pid, const Function& function,
                        std::span<const std::uint64_t> outs);

  // Finds the direction of a copy between addresses that may be on either side. Leaves it alone if
  // it cannot be known.
  void infer_direction(std::uint32_t pid, Details& details) const;
  // Finds the GPUs of both ends if a copy is between two GPUs or names two contexts. Not for a copy
  // whose rows a struct describes: it may span more than its bytes.
  void find_devices(std::uint32_t pid, const Function& function, Details& details) const;

  Block block_of(OfProcess& process, const Function& function, const Details& details);
  void keep(OfProcess& process, Blocks& blocks, const Block& block);
  bool make_room(OfProcess& process);
  void forget(Blocks& blocks, std::uint64_t address, std::uint64_t size);
  // What a call frees by its address or handle.
  Block* freed_by(std::uint32_t pid, const Function& function, const Details& details);
  void free(Blocks& blocks, std::uint64_t address);
  void follow_handle(OfProcess& process, const Function& function, const Details& details);

  // Since it was allocated, nothing was lost that could have freed it.
  static bool is_certain(const OfProcess& process, const Block& block);
  // The device that all `size` bytes are on.
  static std::optional<std::int32_t> device_of(const OfProcess& process, std::uint64_t address,
                                               std::uint64_t size);
  static std::optional<Block::Side> side_of(const OfProcess& process, std::uint64_t address);

  const Seen seen_;
  const bool finds_ends_;
  Bounds& bounds_;
  HashMap<std::uint32_t, OfProcess> processes_;
  std::size_t kept_ = 0;  // blocks, of all processes
};

}  // namespace cudabpf
