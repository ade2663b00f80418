// The memory that is live at each line of a trace.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "state/live_memory.hpp"
#include "trace/read/line.hpp"

namespace cudabpf::analyze {

// Where a block comes from, besides its function.
struct MemoryOrigin {
  Name holder;                      // whose code asked for it; none: it is not known
  Name line;                        // of Python
  Name comm;                        // of the process, when it asked
  std::optional<std::int64_t> gpu;  // by CUDA's ordinal
};

class TracedMemory {
 public:
  // To the listener a block's function is the number of its name.
  TracedMemory(Names& names, LiveMemory::Listener& listener, std::size_t most = LiveMemory::MAX);

  void line(const Line& line);
  const LiveMemory& live() const { return live_; }
  MemoryKind kind_of(const Line& line) const;
  const MemoryOrigin& origin_of(const LiveMemory::Block& block) const {
    return origins_[block.origin];
  }

 private:
  void call(const Line& line);
  MemoryEffect effect_of(const Line& line) const;
  std::uint32_t origin_of(const Line& line);

  // Functions with an effect that their meaning does not have.
  std::vector<std::pair<Name, MemoryEffect>> by_name_;
  std::array<Name, MEMORY_KINDS> kinds_;
  // A trace may claim any number of them: those that find no room are not known.
  static constexpr std::size_t MAX_ORIGINS = 1 << 16;
  std::vector<MemoryOrigin> origins_{{}};
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::int64_t>, std::uint32_t>
      origin_numbers_;
  LiveMemory live_;
};

}  // namespace cudabpf::analyze
