// The calls that make a GPU work. Lines of what it did come long after these and name the call
// alone; when that was, and on which thread, is found here.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/work.hpp"

namespace cudabpf::analyze {

struct AskingCall {
  std::uint64_t id = 0, ts = 0;
  std::uint64_t graph = 0;  // the number of the one that it launches; 0: none, or not known
  std::uint32_t tid = 0;
  bool timed = false;  // its duration is known
};

// Only these are known to AskingCalls. A call that failed has made nothing work.
inline bool asks_gpu(const Line& call) { return gives_work(work_of(call)) && !call.failed(); }

class AskingCalls {
 public:
  void add(const Line& call) {
    if (calls_.empty()) calls_.resize(MOST);
    calls_[call.id % MOST] = {call.id, call.ts, call.graph, call.tid, call.has(Field::duration)};
  }
  // Null: it never came, or too long ago.
  const AskingCall* find(std::uint64_t id) const {
    if (calls_.empty() || !id) return nullptr;
    const AskingCall& call = calls_[id % MOST];
    return call.id == id ? &call : nullptr;
  }

 private:
  // Calls have rising numbers, so a later one takes the place of one that was this many before. A
  // GPU has a few thousand calls' work before it, and what it did is told within a second.
  static constexpr std::size_t MOST = 1 << 18;

  std::vector<AskingCall> calls_;  // by number
};

}  // namespace cudabpf::analyze
