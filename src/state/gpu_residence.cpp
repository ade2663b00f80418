#include "state/gpu_residence.hpp"

#include <algorithm>
#include <numeric>

#include "util/limited.hpp"
#include "util/saturating.hpp"

namespace cudabpf {

void GpuResidence::add(const GpuResidents& residents) {
  time_ = saturating_sum(time_, residents.to - residents.from);
  unknown_ = saturating_sum(unknown_, residents.unknown_ns);
  for (const GpuResident& resident : residents.processes) {
    bool fits = has_room_for(by_pid_, resident.pid, MAX_PROCESSES);
    std::uint64_t& ns = by_pid_[fits ? resident.pid : 0];
    ns = saturating_sum(ns, resident.ns);
  }
}

// The clocks of GPU and CPU differ slightly: the parts may be a little more than the whole.
std::uint64_t GpuResidence::no_process() const {
  std::uint64_t known = std::accumulate(
      by_pid_.begin(), by_pid_.end(), unknown_,
      [](std::uint64_t sum, const auto& process) { return saturating_sum(sum, process.second); });
  return time_ - std::min(time_, known);
}

std::vector<std::pair<std::uint32_t, std::uint64_t>> GpuResidence::processes() const {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> all(by_pid_.begin(), by_pid_.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return all;
}

}  // namespace cudabpf
