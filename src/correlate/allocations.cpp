#include "correlate/allocations.hpp"

namespace cudabpf {

void Allocations::follow(std::uint32_t pid, const Function& function, Details& details) {
  bool adds = function.op == "alloc" || function.op == "map" || function.op == "register";
  bool removes = function.op == "free" || function.op == "unmap" || function.op == "unregister";
  if (!details.ptr || (!adds && !removes)) return;
  if (adds) {
    if (details.size)
      processes_[pid].insert_or_assign(*details.ptr, Range{*details.size, function.kind == "host"});
    return;
  }
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  auto range = process->second.find(*details.ptr);
  if (range == process->second.end()) return;
  if (!details.size) details.size = range->second.size;
  process->second.erase(range);
}

const Allocations::Range* Allocations::range_at(const Ranges& ranges, std::uint64_t address) {
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return nullptr;
  const auto& [start, range] = *std::prev(after);
  return address - start < range.size ? &range : nullptr;
}

void Allocations::infer_direction(std::uint32_t pid, Details& details) const {
  auto process = processes_.find(pid);
  if (process == processes_.end() || !details.dst || !details.src) return;
  const Range* to = range_at(process->second, *details.dst);
  const Range* from = range_at(process->second, *details.src);
  if (!to && !from) return;
  // What was never seen allocated is taken for ordinary host memory.
  bool to_device = to && !to->host;
  bool from_device = from && !from->host;
  details.op = to_device ? (from_device ? "DtoD" : "HtoD") : (from_device ? "DtoH" : "HtoH");
  details.inferred_op = true;
}

}  // namespace cudabpf
