// The memory that is live at each line of a trace.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "state/live_memory.hpp"
#include "trace/read/line.hpp"

namespace cudabpf::analyze {

class TracedMemory {
 public:
  // To the listener a block's function is the number of its name.
  TracedMemory(Names& names, LiveMemory::Listener& listener, std::size_t most = LiveMemory::MOST);

  void line(const Line& line);
  const LiveMemory& live() const { return live_; }

 private:
  void call(const Line& line);
  MemoryEffect effect_of(const Line& line) const;
  MemoryKind kind_of(const Line& line) const;

  // Functions with an effect that their meaning does not have.
  std::vector<std::pair<Name, MemoryEffect>> by_name_;
  std::array<Name, MEMORY_KINDS> kinds_;
  LiveMemory live_;
};

}  // namespace cudabpf::analyze
