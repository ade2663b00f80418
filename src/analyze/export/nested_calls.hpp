// The calls of one thread, held until the outermost is there. The line of one that was made inside
// of another comes before that other's; a timeline wants it after, or cannot tell which of two that
// began in the same nanosecond is inside of which.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/trace/line.hpp"

namespace cudabpf::analyze {

class NestedCalls {
 public:
  struct Held {
    Line line;                         // without its text
    std::vector<std::uint64_t> flows;  // to what the driver was asked for in it
    std::size_t first = 0;             // of the calls inside of it, which stand before it
  };

  std::size_t size() const { return held_.size(); }

  void hold(const Line& call, std::vector<std::uint64_t> flows) {
    std::size_t first = held_.size();
    while (!outermost_.empty() && held_[outermost_.back()].line.parent == call.id) {
      first = held_[outermost_.back()].first;
      outermost_.pop_back();
    }
    outermost_.push_back(held_.size());
    held_.push_back({call, std::move(flows), first});
    held_.back().line.text = held_.back().line.args = {};
  }

  // Gives them back, and holds none any more: begin(), then those inside of it, then end().
  template <typename Begin, typename End>
  void give(Begin&& begin, End&& end) {
    // Calls nest as deep as a trace says: what is begun is on a stack of its own.
    std::vector<std::size_t> next(outermost_.rbegin(), outermost_.rend()), begun;
    while (!next.empty()) {
      std::size_t call = next.back();
      if (!begun.empty() && begun.back() == call) {  // all those inside of it were given
        end(held_[call]);
        begun.pop_back();
        next.pop_back();
        continue;
      }
      begin(held_[call]);
      begun.push_back(call);
      for (std::size_t after = call; after > held_[call].first; after = held_[after - 1].first)
        next.push_back(after - 1);
    }
    outermost_.clear();
    held_.clear();
  }

 private:
  std::vector<Held> held_;              // as their lines came
  std::vector<std::size_t> outermost_;  // those of them that no other that is held made
};

}  // namespace cudabpf::analyze
