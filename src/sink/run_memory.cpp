#include "sink/run_memory.hpp"

#include <algorithm>

namespace cudabpf {

void RunMemory::allocated(const LiveMemory::Block& block) {
  of_kind(figures_, block.kind).block_allocated(block.size);
  if (block.kind == MemoryKind::host) return;
  OfDevice& device = devices_[FollowedMemory::device_of(block)];
  device.held += block.size;
  device.peak = std::max(device.peak, device.held);
}

void RunMemory::ended(const LiveMemory::Block& block, std::uint64_t, LiveMemory::Ended how) {
  of_kind(figures_, block.kind).block_ended(block.size, how);
  if (block.kind != MemoryKind::host) devices_[FollowedMemory::device_of(block)].held -= block.size;
}

}  // namespace cudabpf
