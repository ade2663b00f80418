// Entries and returns of one thread, paired by stack pointer.
//
// A return belongs to the entry with the same stack pointer and function. That is exact as long as
// no record between the two was lost; `drops`, the count of this thread's lost records, tells
// whether one was. Where a pairing or a parent could be wrong, it is not made: a missing duration
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
  std::uint64_t parent = 0;
  std::uint64_t ts = 0;
  std::uint32_t sp = 0;
  std::uint32_t drops = 0;
  const Function* function = nullptr;
  bool jumped = false;  // one of two calls with one stack pointer: the first jumped to the second
  bool read_fault = false;
  bool string_cut = false;
  bool has_text = false;
  std::uint8_t nwords = 0;
  std::array<std::uint64_t, CB_MAX_ARGS> words{};
  std::string text;
  Details details;
  const KernelName* kernel = nullptr;
  std::uint32_t ioctls = 0;
  std::uint64_t ioctl_time = 0;
};

// Has a thread lost no record between two of its records?
inline bool nothing_lost_between(std::uint32_t drops_before, std::uint32_t drops_after) {
  return drops_before == drops_after;
}

class CallStack {
 public:
  explicit CallStack(std::uint32_t pid) : pid_(pid) {}

  std::uint32_t pid() const { return pid_; }
  std::size_t depth() const { return depth_; }
  const Frame& top() const { return frames_[depth_ - 1]; }

  // Notes the count that a record of this thread brings; false if it tells of new losses.
  bool same_drops(std::uint32_t drops) {
    bool same = nothing_lost_between(drops_, drops);
    drops_ = drops;
    return same;
  }

  // Is the top frame one that cannot be live any more when a call begins? Stacks grow down, so a
  // call made inside another has a lower stack pointer. It has the same one only where a function
  // ends in a jump to another (a tail call; both return, the second first), and then at once and
  // with nothing lost between.
  bool top_is_stale(std::uint32_t sp, std::uint32_t drops) const {
    if (depth_ == 0 || is_below(sp, top().sp)) return false;
    return top().sp != sp || top().jumped || !nothing_lost_between(top().drops, drops);
  }
  // Is it one that cannot be live any more when a call that began at `sp` has returned?
  bool top_is_over(std::uint32_t sp) const { return depth_ > 0 && !is_below(sp, top().sp); }

  // A new frame on top. It is recycled, so its text keeps its memory.
  Frame& push(std::uint32_t sp, std::uint32_t drops) {
    if (depth_ == frames_.size()) frames_.emplace_back();
    Frame& frame = frames_[depth_++];
    frame.sp = sp;
    frame.drops = drops;
    frame.parent = 0;
    frame.jumped = false;
    frame.ioctls = 0;
    frame.ioctl_time = 0;
    if (depth_ > 1) {
      Frame& below = frames_[depth_ - 2];
      // After a loss it is not known whether the frame below is still live.
      if (nothing_lost_between(below.drops, drops)) frame.parent = below.id;
      if (below.sp == sp) frame.jumped = below.jumped = true;
    }
    return frame;
  }
  // What the driver was asked for inside a call was asked for inside those around it, too.
  void pop() {
    const Frame& gone = frames_[--depth_];
    if (!gone.parent || !gone.ioctls) return;
    frames_[depth_ - 1].ioctls += gone.ioctls;
    frames_[depth_ - 1].ioctl_time += gone.ioctl_time;
  }
  // An ioctl was made inside the call with this id, if it is still the innermost.
  void ioctl_made(std::uint64_t id, std::uint64_t time) {
    if (depth_ == 0 || top().id != id) return;
    frames_[depth_ - 1].ioctls++;
    frames_[depth_ - 1].ioctl_time += time;
  }

  // How many frames lie above the one that a return with `sp` of `function` ends; -1: none does.
  int frames_above(std::uint32_t sp, const Function* function) const {
    for (std::size_t i = depth_; i > 0; i--)
      if (frames_[i - 1].sp == sp && frames_[i - 1].function == function)
        return static_cast<int>(depth_ - i);
    return -1;
  }

 private:
  // Only the low halves are known, so they are compared around the wrap.
  static bool is_below(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(b - a) > 0;
  }

  std::uint32_t pid_;
  std::uint32_t drops_ = 0;
  std::size_t depth_ = 0;
  std::vector<Frame> frames_;
};

}  // namespace cudabpf
