// How much of the time that a GPU spent in collectives was hidden by other work that it did
// meanwhile. Needs a process's operations on a GPU in the order of their beginnings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

#include "analyze/gaps/busy.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

template <typename Owner>
class HiddenTime {
 public:
  // Calls `hidden(owner, ns)` for each collective that had ended by then.
  template <typename Hidden>
  void until(std::uint64_t ts, Hidden&& hidden) {
    for (; !open_.empty() && open_.top().end <= ts; open_.pop()) {
      const Open& one = open_.top();
      hidden(one.owner, worked_until(one.end) - one.worked_before);
    }
  }
  void work(std::uint64_t begin, std::uint64_t end) { work_.add(begin, end); }
  void collective(std::uint64_t begin, std::uint64_t end, Owner owner) {
    open_.push({end, worked_until(begin), owner});
  }

 private:
  struct Open {
    std::uint64_t end = 0, worked_before = 0;
    Owner owner;
    bool operator<(const Open& other) const { return end > other.end; }  // the first to end on top
  };

  // No work added so far begins after `ts`, or it would come later.
  std::uint64_t worked_until(std::uint64_t ts) const {
    return work_.total() - grown(work_.end(), ts);
  }

  Union work_;
  std::priority_queue<Open> open_;
};

}  // namespace cudabpf::analyze
