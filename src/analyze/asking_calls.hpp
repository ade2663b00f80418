// The calls that make a GPU work. Lines of what it did come long after these and name the call
// alone; when that was, and on which thread, is found here.
#pragma once

#include <cstdint>

#include "analyze/calls_by_id.hpp"
#include "analyze/work.hpp"

namespace cudabpf::analyze {

struct AskingCall {
  // A GPU has a few thousand calls' work before it, and what it did is told within a second.
  static constexpr std::size_t MOST = std::size_t{1} << 18;

  std::uint64_t id = 0, ts = 0;
  std::uint64_t graph = 0;  // the number of the one that it launches; 0: none, or not known
  std::uint32_t tid = 0;
  bool timed = false;  // its duration is known
};

// Only these are known to AskingCalls. A call that failed has made nothing work.
inline bool asks_gpu(const Line& call) { return gives_work(call.work) && !call.failed(); }

inline AskingCall asking_call(const Line& call) {
  return {call.id, call.ts, call.graph, call.tid, call.has(Field::duration)};
}

using AskingCalls = CallsById<AskingCall>;

}  // namespace cudabpf::analyze
