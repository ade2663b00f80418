// Which processes had a machine's GPUs, in the time in which that was recorded.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cudabpf/event.hpp"

namespace cudabpf {

class GpuResidence {
 public:
  void add(const GpuResidents& residents);

  bool is_known() const { return time_ > 0; }
  std::uint64_t time() const { return time_; }  // ns, all of it
  std::uint64_t unknown() const { return unknown_; }
  std::uint64_t no_process() const;
  // Pids and ns, the longest first. Pid 0: the driver names no process, or there are too many.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> processes() const;

 private:
  static constexpr std::size_t MAX_PROCESSES = 1024;

  std::uint64_t time_ = 0, unknown_ = 0;
  std::map<std::uint32_t, std::uint64_t> by_pid_;
};

}  // namespace cudabpf
