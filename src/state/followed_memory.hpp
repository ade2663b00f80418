// The live memory of processes, followed from their calls and from their own beginnings and ends.
#pragma once

#include <cstdint>
#include <utility>

#include "cudabpf/event.hpp"
#include "state/current_contexts.hpp"
#include "state/live_memory.hpp"
#include "util/hash.hpp"

namespace cudabpf {

class FollowedMemory {
 public:
  // Whether the function's calls may change what a process holds.
  static bool concerns(const Function& function);
  // A block's device; NO_DEVICE: it is not known.
  static constexpr std::uint32_t NO_DEVICE = UINT32_MAX;
  static std::uint32_t device_of(const LiveMemory::Block& block);

  explicit FollowedMemory(LiveMemory::Listener& listener) : live_(listener) {}

  // All calls of all processes were seen: they began while tracing.
  void all_seen() { all_seen_ = true; }
  // All calls of this process were seen, so it holds nothing else.
  bool sees_all(std::uint32_t pid) const { return all_seen_ || begun_.contains(pid); }
  void call(const Call& call);
  void process(const Process& process);

  const LiveMemory& live() const { return live_; }

 private:
  void memory(const Call& call);
  void context(const Call& call);

  LiveMemory live_;
  CurrentContexts contexts_;
  HashSet<std::uint32_t> begun_;  // processes that were seen to begin
  bool all_seen_ = false;
};

}  // namespace cudabpf
