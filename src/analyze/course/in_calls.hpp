// When at least one thread of a process was in a call: of stretches that meet, one is kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

namespace cudabpf::analyze {

class InCalls {
 public:
  // In the order of their beginnings; what comes late is cut to that.
  void add(std::uint64_t begin, std::uint64_t end) {
    if (stretches_.empty() || begin > stretches_.back().end)
      stretches_.push_back({begin, std::max(begin, end)});
    else
      stretches_.back().end = std::max(stretches_.back().end, end);
  }
  // What ended until then is not asked for again.
  void forget_until(std::uint64_t ts) {
    while (!stretches_.empty() && stretches_.front().end <= ts) stretches_.pop_front();
  }
  // For how long of that time there was one in a call.
  std::uint64_t time_in(std::uint64_t begin, std::uint64_t end) const {
    auto at = std::lower_bound(
        stretches_.begin(), stretches_.end(), begin,
        [](const Stretch& stretch, std::uint64_t ts) { return stretch.end <= ts; });
    std::uint64_t time = 0;
    for (; at != stretches_.end() && at->begin < end; ++at)
      time += std::min(at->end, end) - std::max(at->begin, begin);
    return time;
  }

 private:
  struct Stretch {
    std::uint64_t begin = 0, end = 0;
  };
  std::deque<Stretch> stretches_;
};

}  // namespace cudabpf::analyze
