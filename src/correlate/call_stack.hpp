// Entries and returns of one thread, paired by stack pointer.
//
// A return belongs to the entry with the same stack pointer and function. That is exact as long as
// no record between the two was lost; `drops`, the count of this thread's lost records, tells
// whether one was. Where a pairing could be wrong, the two are reported apart: a missing duration
// is better than a wrong one.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cudabpf/event.hpp"

namespace cudabpf {

struct Frame {
  std::uint64_t id = 0;
  std::uint64_t ts = 0;
  std::uint32_t sp = 0;
  std::uint32_t drops = 0;
  const Function* function = nullptr;
  bool read_fault = false;
  bool string_cut = false;
  bool has_text = false;
  std::uint8_t nwords = 0;
  std::array<std::uint64_t, CB_MAX_ARGS> words{};
  std::string text;
  Details details;
  const KernelName* kernel = nullptr;
};

class CallStack {
 public:
  explicit CallStack(std::uint32_t pid) : pid_(pid) {}

  std::uint32_t pid() const { return pid_; }
  std::size_t depth() const { return depth_; }
  const Frame& top() const { return frames_[depth_ - 1]; }

  // A new frame on top. It is recycled, so its text keeps its memory.
  Frame& push() {
    if (depth_ == frames_.size()) frames_.emplace_back();
    return frames_[depth_++];
  }
  void pop() { depth_--; }

  // Is the top frame one that cannot be live any more when the stack pointer is `sp` at a new
  // entry? Stacks grow down, so a call made inside another has a lower one.
  bool top_is_stale(std::uint32_t sp) const {
    return depth_ > 0 && static_cast<std::int32_t>(top().sp - sp) <= 0;
  }

  // How many frames lie above the one that a return with `sp` of `function` ends; -1: none does.
  int frames_above(std::uint32_t sp, const Function* function) const {
    for (std::size_t i = depth_; i > 0; i--)
      if (frames_[i - 1].sp == sp && frames_[i - 1].function == function)
        return static_cast<int>(depth_ - i);
    return -1;
  }

 private:
  std::uint32_t pid_;
  std::size_t depth_ = 0;
  std::vector<Frame> frames_;
};

// Between an entry and the return that seems to end it, the return and a second entry with the same
// stack pointer may both be missing; that takes two lost records.
inline bool pairing_is_certain(std::uint32_t drops_at_entry, std::uint32_t drops_at_return) {
  return drops_at_return - drops_at_entry < 2;
}

}  // namespace cudabpf
