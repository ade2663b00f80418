// Which context is current on each thread, and which ones calls destroy, as calls show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cudabpf/cuda_api.hpp"
#include "cudabpf/event.hpp"
#include "util/hash.hpp"

namespace cudabpf {

// A successful call of a function that does something to contexts.
struct ContextCall {
  ContextEffect effect = ContextEffect::none;
  std::uint64_t process = 0;  // its number
  std::uint32_t tid = 0;
  std::uint64_t context = 0;           // what its argument says; 0: none
  std::optional<std::int64_t> device;  // its argument, for the primary context of that device
  bool seen_begin = false;             // all of the process's calls were seen
};

// The argument of such a function that has the context; null: there is none.
const Argument* context_argument(const Function& function);

// What a call did, for a process whose number is its pid.
ContextCall context_call(const Call& call);

class CurrentContexts {
 public:
  // How many contexts of one thread are kept; beyond, only the last are known.
  explicit CurrentContexts(std::size_t max_depth = 64) : max_depth_(max_depth) {}

  // 0: not known.
  std::uint64_t current(std::uint64_t process, std::uint32_t tid);
  // The context that the call destroys; 0: none.
  std::uint64_t change(const ContextCall& call);
  // The thread has ended, or it is not known which contexts it has.
  void forget_thread(std::uint64_t process, std::uint32_t tid);
  void process_gone(std::uint64_t process);
  // How much is kept of all processes.
  std::size_t size() const { return stacks_ + destroyed_ + primaries_ + attached_; }

 private:
  static constexpr std::size_t MAX_THREADS = 1 << 15;    // of all processes
  static constexpr std::size_t MAX_DESTROYED = 1 << 15;  // of all processes
  static constexpr std::size_t MAX_PRIMARIES = 1 << 15;
  static constexpr std::size_t MAX_ATTACHED = 1 << 15;
  using Stack = std::vector<std::uint64_t>;

  // A context that several users share; it is destroyed when the last one releases it.
  struct Primary {
    std::uint64_t context = 0;
    std::uint64_t users = 0;
  };
  struct OfProcess {
    HashMap<std::uint32_t, Stack> stacks;      // by thread
    HashMap<std::int64_t, Primary> primaries;  // by device
    // How often a context was attached to; it takes one more detach to destroy it.
    HashMap<std::uint64_t, std::uint64_t> attached;
    // Contexts that threads may still have on their stacks: every call that needs one fails.
    HashSet<std::uint64_t> destroyed;
  };

  std::uint64_t destroyed_by(OfProcess& process, const ContextCall& call);
  std::uint64_t change_primary(OfProcess& process, const ContextCall& call);
  std::uint64_t detach(OfProcess& process, const ContextCall& call);
  void made(OfProcess& process, std::uint64_t context);
  Stack& stack(OfProcess& process, std::uint32_t tid);
  void push(OfProcess& process, std::uint32_t tid, std::uint64_t context);
  void pop(OfProcess& process, std::uint32_t tid);

  // No program nests contexts deep; one that only pushes must not take all memory.
  std::size_t max_depth_;
  HashMap<std::uint64_t, OfProcess> processes_;                            // by number
  std::size_t stacks_ = 0, destroyed_ = 0, primaries_ = 0, attached_ = 0;  // of all processes
  std::uint64_t last_process_ = 0;
  std::uint32_t last_tid_ = 0;
  std::uint64_t last_current_ = 0;  // on that thread of that process
};

}  // namespace cudabpf
