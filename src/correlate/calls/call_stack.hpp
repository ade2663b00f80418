// Entries and returns of one thread, paired by stack pointer.
//
// A return belongs to the entry with the same stack pointer and function. That is exact as long as
// no record between the two was lost, which `drops`, the count of this thread's lost records,
// shows. If a pairing or a parent could be wrong, it is not made: a missing duration is better than
// a wrong one.
//
// Stacks grow down, so a call made inside another has a lower stack pointer, unless a signal
// handler makes it on a stack of its own. If a call begins above an open one, either that has
// happened or longjmp has left the open one. The open one may still return, so it is kept, but it
// is no parent until it is seen to be live.
//
// A call's parent is of its own layer: the driver's calls that a collective makes have no parent in
// the driver, and name the collective as the call that they are within.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cudabpf/abi.h"
#include "cudabpf/event.hpp"
#include "cudabpf/product.hpp"

namespace cudabpf {

// Memory that a call frees, if it succeeds.
struct Freed {
  std::uint64_t size = 0;
  std::uint32_t losses = 0;  // of the process, when it was allocated
};

struct Frame {
  std::uint64_t id = 0;
  std::uint64_t enclosing = 0;  // the open call that made it, of whatever layer; 0: none
  std::uint64_t parent = 0;     // the innermost call of its layer around it
  std::uint64_t within = 0;     // the innermost call of a higher layer around it
  std::uint64_t ts = 0;
  std::uint32_t sp = 0;
  std::uint32_t drops = 0;
  const Function* function = nullptr;
  bool jumped = false;  // shares its stack pointer with another: the first jumped to the second
  bool passed = false;  // a call began above it with nothing lost: longjmp may have left it
  bool read_fault = false;
  bool string_cut = false;
  bool has_text = false;
  std::uint8_t nwords = 0;
  std::array<std::uint64_t, CB_MAX_ARGS> words{};
  std::string text;
  Details details;
  std::span<const std::byte> structure;  // what was read of its structs; only while it begins
  std::optional<Product> product;
  std::vector<std::int32_t> devices;
  std::optional<Freed> freed;
  std::uint64_t payload = 0;
  const KernelName* kernel = nullptr;
  std::shared_ptr<const Communicator> communicator;
  std::uint64_t sequence = 0;
  std::uint64_t group = 0;
  std::shared_ptr<const RangePath> range;
  std::uint64_t stack_number = 0;  // its process's own; 0: none
  std::shared_ptr<const PythonStack> stack;
  std::string holder;
  std::uint32_t ioctls = 0;
  std::uint64_t ioctl_time = 0;
};

// Has a thread lost no record between two of its records?
inline bool nothing_lost_between(std::uint32_t drops_before, std::uint32_t drops_after) {
  return drops_before == drops_after;
}

class CallStack {
 public:
  std::size_t depth() const { return depth_; }
  const Frame& top() const { return frames_[depth_ - 1]; }

  // Notes the count in a record of this thread; false if the record reveals new losses.
  bool same_drops(std::uint32_t drops) {
    bool same = nothing_lost_between(drops_, drops);
    drops_ = drops;
    return same;
  }

  // How many frames, from the top, cannot be live any more when a call begins at `sp`? If records
  // were lost, those that do not enclose it. Otherwise those with its stack pointer, and those
  // above them: two live calls share a stack pointer only if a function ends in a jump to another
  // (a tail call; both return, the second first), and then the second follows at once.
  std::size_t over_at_entry(std::uint32_t sp, std::uint32_t drops) const {
    std::size_t over = 0;
    for (; over < depth_; over++) {
      const Frame& frame = from_top(over);
      if (is_below(sp, frame.sp) || nothing_lost_between(frame.drops, drops)) break;
    }
    for (std::size_t i = over; i < depth_; i++) {
      const Frame& frame = from_top(i);
      bool jumps = i == 0 && !frame.jumped && !frame.passed;
      if (frame.sp == sp && !jumps) over = i + 1;
    }
    return over;
  }
  // Can the top frame not be live any more once a call that began at `sp` has returned?
  bool top_is_over(std::uint32_t sp) const { return depth_ > 0 && !is_below(sp, top().sp); }

  // A call begins at `sp`. Does it pass open ones, which longjmp may have left?
  bool pass(std::uint32_t sp) {
    bool any = false;
    for (std::size_t i = 0; i < depth_; i++) {
      Frame& frame = from_top(i);
      if (frame.passed || !is_below(frame.sp, sp)) continue;
      any = frame.passed = true;
    }
    return any;
  }
  // Pushes a frame. Frames are recycled, so a short text keeps its memory.
  Frame& push(std::uint32_t sp, std::uint32_t drops, const Function& function) {
    Frame* around = nullptr;
    for (std::size_t i = 0; i < depth_ && !around; i++)
      if (!from_top(i).passed) around = &from_top(i);
    if (depth_ == frames_.size()) frames_.emplace_back();
    Frame& frame = frames_[depth_++];
    frame.sp = sp;
    frame.drops = drops;
    frame.function = &function;
    frame.passed = false;
    frame.jumped = around && around->sp == sp;
    if (frame.jumped) around->jumped = true;
    // After a loss it is not known whether the frame below is still live.
    if (around && !nothing_lost_between(around->drops, drops)) around = nullptr;
    enclose(frame, around);
    frame.freed.reset();
    frame.kernel = nullptr;
    frame.product.reset();
    frame.communicator.reset();
    frame.range.reset();
    frame.stack.reset();
    frame.holder.clear();
    frame.sequence = frame.group = 0;
    frame.ioctls = 0;
    frame.ioctl_time = 0;
    return frame;
  }
  // Ioctls made inside a call were also made inside the calls that enclose it.
  void pop() {
    Frame& gone = frames_[--depth_];
    gone.range.reset();  // names that are in no use make room for others
    gone.stack.reset();
    if (gone.text.capacity() > KEPT_TEXT) gone.text = std::string();
    if (Frame* around = gone.enclosing ? find(gone.enclosing) : nullptr) {
      around->ioctls += gone.ioctls;
      around->ioctl_time += gone.ioctl_time;
    }
    while (frames_.size() > depth_ + KEPT_FRAMES) frames_.pop_back();
  }
  // The top frame has returned, so it was live, and so were the calls that enclose it.
  void top_returned() {
    for (Frame* frame = find(top().enclosing); frame && frame->passed;
         frame = find(frame->enclosing))
      frame->passed = false;
  }
  // The innermost call known to be open; null if there is none.
  const Frame* innermost() const {
    for (std::size_t i = 0; i < depth_; i++)
      if (!from_top(i).passed) return &from_top(i);
    return nullptr;
  }
  // Whether the top call was made inside of one to such a function, of its own layer.
  template <typename Is>
  bool top_is_inside(Is&& is) const {
    for (std::uint64_t parent = top().parent, i = 1; parent && i < depth_; i++) {
      const Frame& frame = from_top(i);
      if (frame.id != parent) continue;
      if (is(*frame.function)) return true;
      parent = frame.parent;
    }
    return false;
  }
  // An ioctl was made inside the call with this id, if it is still the innermost.
  void ioctl_made(std::uint64_t id, std::uint64_t time) {
    const Frame* inner = innermost();
    if (!inner || inner->id != id) return;
    Frame* call = find(id);
    call->ioctls++;
    call->ioctl_time += time;
  }
  template <typename Visit>
  void each(Visit&& visit) const {
    for (std::size_t i = 0; i < depth_; i++) visit(frames_[i]);
  }

  // The top call, if it began at `sp` and nothing was lost since; else null.
  Frame* innermost_at(std::uint32_t sp, std::uint32_t drops) {
    if (!depth_) return nullptr;
    Frame& frame = from_top(0);
    return frame.sp == sp && nothing_lost_between(frame.drops, drops) ? &frame : nullptr;
  }
  // How many frames are above the one that a return of `function` at `sp` ends; -1: there is none.
  int frames_above(std::uint32_t sp, const Function* function) const {
    for (std::size_t i = depth_; i > 0; i--)
      if (frames_[i - 1].sp == sp && frames_[i - 1].function == function)
        return static_cast<int>(depth_ - i);
    return -1;
  }

 private:
  static constexpr std::size_t KEPT_FRAMES = 2, KEPT_TEXT = 256;

  // Finds what is around a frame that was just pushed, from the innermost open call outwards.
  void enclose(Frame& frame, const Frame* around) {
    frame.enclosing = around ? around->id : 0;
    frame.parent = frame.within = 0;
    auto layer = frame.function->layer();
    for (; around; around = around->enclosing ? find(around->enclosing) : nullptr) {
      auto its = around->function->layer();
      if (!frame.parent && its == layer) frame.parent = around->id;
      if (!frame.within && its > layer) frame.within = around->id;
    }
  }

  Frame& from_top(std::size_t i) { return frames_[depth_ - 1 - i]; }
  const Frame& from_top(std::size_t i) const { return frames_[depth_ - 1 - i]; }
  Frame* find(std::uint64_t id) {
    for (std::size_t i = 0; i < depth_; i++)
      if (from_top(i).id == id) return &from_top(i);
    return nullptr;
  }

  // Only the low halves are known, so the comparison allows for wrap-around.
  static bool is_below(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(b - a) > 0;
  }

  std::uint32_t drops_ = 0;
  std::size_t depth_ = 0;
  std::deque<Frame> frames_;  // so that frames never move
};

}  // namespace cudabpf
