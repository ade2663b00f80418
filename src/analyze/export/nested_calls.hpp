// Holds a thread's calls until the outermost one arrives. The line of a call made inside another
// comes before the other's; a timeline needs it after, or cannot know which of two calls that began
// in the same nanosecond is inside which.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/work.hpp"
#include "trace/read/line.hpp"

namespace cudabpf::analyze {

class NestedCalls {
 public:
  struct Held {
    Line line;                         // without its text
    std::vector<std::uint64_t> flows;  // to the driver operations made in it
    std::uint64_t enqueues = 0;        // to what it put into a stream; 0: nothing
    std::size_t first = 0;             // of the calls inside it, which precede it
  };

  std::size_t size() const { return held_.size(); }

  void hold(const Line& call, std::vector<std::uint64_t> flows, std::uint64_t enqueues) {
    std::size_t first = held_.size();
    while (!outermost_.empty() && enclosing(held_[outermost_.back()].line) == call.id) {
      first = held_[outermost_.back()].first;
      outermost_.pop_back();
    }
    outermost_.push_back(held_.size());
    held_.push_back({call, std::move(flows), enqueues, first});
    held_.back().line.text = held_.back().line.args = {};
  }

  // Gives all of them back: begin(), then the calls inside it, then end().
  template <typename Begin, typename End>
  void give(Begin&& begin, End&& end) {
    // A trace may nest calls to any depth, so those begun are on an explicit stack.
    std::vector<std::size_t> next(outermost_.rbegin(), outermost_.rend()), begun;
    while (!next.empty()) {
      std::size_t call = next.back();
      if (!begun.empty() && begun.back() == call) {  // all calls inside it were given
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
  std::vector<Held> held_;              // in the order of their lines
  std::vector<std::size_t> outermost_;  // those that no other held call made
};

}  // namespace cudabpf::analyze
