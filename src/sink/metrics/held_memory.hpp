// How much memory each process holds by calls that were seen, in one table for all of them, which
// has a limit.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "cudabpf/event.hpp"
#include "state/followed_memory.hpp"

namespace cudabpf {

class HeldMemory : private LiveMemory::Listener {
 public:
  // Called when a process holds more or less. Host memory does not count.
  using OnChange = std::function<void(std::uint32_t pid, std::uint64_t more, std::uint64_t less)>;
  explicit HeldMemory(OnChange on_change) : on_change_(std::move(on_change)) {}

  void call(const Call& call) { memory_.call(call); }
  void process(const Process& process) { memory_.process(process); }

 private:
  void allocated(const LiveMemory::Block& block) override {
    if (block.kind != MemoryKind::host) on_change_(block.pid, block.size, 0);
  }
  void ended(const LiveMemory::Block& block, std::uint64_t, LiveMemory::Ended) override {
    if (block.kind != MemoryKind::host) on_change_(block.pid, 0, block.size);
  }
  void freed_unknown(const MemoryCall&) override {}

  OnChange on_change_;
  FollowedMemory memory_{*this};
};

}  // namespace cudabpf
