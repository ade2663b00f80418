// The memory that traced processes hold, as the summary of a run shows it.
#pragma once

#include <cstdint>
#include <map>

#include "cudabpf/sink.hpp"
#include "state/followed_memory.hpp"
#include "state/memory_figures.hpp"

namespace cudabpf {

class RunMemory : private LiveMemory::Listener {
 public:
  static bool concerns(const Function& function) { return FollowedMemory::concerns(function); }

  void all_seen() { memory_.all_seen(); }
  bool sees_all(std::uint32_t pid) const { return memory_.sees_all(pid); }
  void call(const Call& call) { memory_.call(call); }
  void process(const Process& process) { memory_.process(process); }

  const MemoryByKind& figures() const { return figures_; }
  // Bytes, without host memory, by device if it is known.
  struct OfDevice {
    std::uint64_t held = 0, peak = 0;
  };
  static constexpr std::uint32_t NO_DEVICE = FollowedMemory::NO_DEVICE;
  const std::map<std::uint32_t, OfDevice>& devices() const { return devices_; }
  const LiveMemory::LeftOut& left_out() const { return memory_.live().left_out(); }

 private:
  void allocated(const LiveMemory::Block& block) override;
  void ended(const LiveMemory::Block& block, std::uint64_t ts, LiveMemory::Ended how) override;
  void freed_unknown(const MemoryCall&) override {}

  FollowedMemory memory_{*this};
  MemoryByKind figures_{};
  std::map<std::uint32_t, OfDevice> devices_;  // NO_DEVICE: bytes whose device is not known
};

}  // namespace cudabpf
