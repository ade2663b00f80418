// The thread whose phases and iterations are shown.
#pragma once

#include <cstdint>

namespace cudabpf::analyze {

// The threads of a process, or one thread; the one that launches most is shown. 0: any.
struct ThreadFilter {
  std::uint32_t pid = 0, tid = 0;

  bool any() const { return pid || tid; }
  bool has(std::uint32_t its_pid, std::uint32_t its_tid) const {
    return (!pid || pid == its_pid) && (!tid || tid == its_tid);
  }
};

}  // namespace cudabpf::analyze
