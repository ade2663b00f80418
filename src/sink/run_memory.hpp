// The memory that traced processes hold, as the summary of a run shows it.
#pragma once

#include <cstdint>
#include <map>

#include "cudabpf/sink.hpp"
#include "state/current_contexts.hpp"
#include "state/memory_figures.hpp"
#include "util/hash.hpp"

namespace cudabpf {

class RunMemory : private LiveMemory::Listener {
 public:
  // Whether the function's calls may change what a process holds.
  static bool concerns(const Function& function);

  // All calls of all processes were seen: they began while tracing.
  void all_seen() { all_seen_ = true; }
  // All calls of this process were seen, so it holds nothing else.
  bool sees_all(std::uint32_t pid) const { return all_seen_ || begun_.contains(pid); }
  void call(const Call& call);
  void process(const Process& process);

  const MemoryByKind& figures() const { return figures_; }
  // Bytes, without host memory, by device if it is known.
  struct OfDevice {
    std::uint64_t held = 0, peak = 0;
  };
  static constexpr std::uint32_t NO_DEVICE = UINT32_MAX;
  const std::map<std::uint32_t, OfDevice>& devices() const { return devices_; }
  const LiveMemory::LeftOut& left_out() const { return live_.left_out(); }

 private:
  void allocated(const LiveMemory::Block& block) override;
  void ended(const LiveMemory::Block& block, std::uint64_t ts, LiveMemory::Ended how) override;
  void freed_unknown(const MemoryCall&) override {}

  void memory(const Call& call);
  void context(const Call& call);

  LiveMemory live_{*this};
  CurrentContexts contexts_;
  MemoryByKind figures_{};
  std::map<std::uint32_t, OfDevice> devices_;  // NO_DEVICE: bytes whose device is not known
  HashSet<std::uint32_t> begun_;               // processes that were seen to begin
  bool all_seen_ = false;
};

}  // namespace cudabpf
