#include "sink/memory_held.hpp"

#include <algorithm>
#include <optional>

namespace cudabpf {

namespace {

// VMM memory is known by a handle, which may be any number: kept apart from addresses, whose top
// bit is never set.
std::optional<std::uint64_t> key_of(MemoryKind kind, const Details& details) {
  if (kind != MemoryKind::vmm) return details.ptr;
  if (!details.handle) return std::nullopt;
  return *details.handle | std::uint64_t{1} << 63;
}

}  // namespace

void MemoryHeld::allocated(std::uint32_t pid, MemoryKind kind, const Details& details) {
  auto key = key_of(kind, details);
  if (!key || !details.size) return;
  auto [at, is_new] = processes_[pid].try_emplace(*key, Allocation{*details.size, kind});
  if (!is_new) {  // its free was not seen
    drop(at->second);
    at->second = {*details.size, kind};
  }
  MemoryFigures& figures = this->figures(kind);
  figures.allocations++;
  figures.allocated += *details.size;
  figures.held += *details.size;
  figures.peak = std::max(figures.peak, figures.held);
}

void MemoryHeld::freed(std::uint32_t pid, MemoryKind kind, const Details& details) {
  auto key = key_of(kind, details);
  if (!key) return;
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  auto at = process->second.find(*key);
  if (at == process->second.end()) return;
  MemoryFigures& figures = this->figures(at->second.kind);
  figures.frees++;
  figures.freed += at->second.size;
  drop(at->second);
  process->second.erase(at);
}

void MemoryHeld::process_gone(std::uint32_t pid) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  for (const auto& [key, allocation] : process->second) {
    figures(allocation.kind).released += allocation.size;
    drop(allocation);
  }
  processes_.erase(process);
}

}  // namespace cudabpf
