// The windows in which the GPU times of a process are recorded, where they are not always.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "cudabpf/abi.h"

namespace cudabpf {

// Times are CLOCK_MONOTONIC.
class GpuWindows {
 public:
  // What is submitted from `open` to `closing` is recorded, and nothing before `opening` or after
  // `closed`.
  struct Window {
    static constexpr std::uint64_t NOT_YET = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t opening = NOT_YET, open = NOT_YET, closing = NOT_YET, closed = NOT_YET;
  };
  enum class Submitted : std::uint8_t { outside, inside, at_an_edge };

  // The window that this completes, if it does.
  std::optional<Window> step(abi::cb_gpu_window_step step, std::uint64_t at) {
    Window& newest = newest_two_.back();
    switch (step) {
      case abi::CB_GPU_OPENING:
        newest_two_ = {newest, {.opening = at}};
        break;
      case abi::CB_GPU_OPEN:
        newest.open = at;
        break;
      case abi::CB_GPU_CLOSING:
        newest.closing = at;
        if (newest.open < at) return newest;
        break;
      case abi::CB_GPU_CLOSED:
        newest.closed = at;
        break;
    }
    return std::nullopt;
  }

  // Where a call lies. It must be recent: only the newest two windows are kept.
  Submitted submitted(std::uint64_t begin, std::uint64_t end) const {
    for (const Window& window : newest_two_) {
      if (end < window.opening || begin > window.closed) continue;
      bool inside = begin >= window.open && end <= window.closing;
      return inside ? Submitted::inside : Submitted::at_an_edge;
    }
    return Submitted::outside;
  }

  // Calls that ended before this have been answered by now, or never will be.
  std::uint64_t oldest() const {
    std::uint64_t opening = newest_two_.front().opening;
    return opening == Window::NOT_YET ? 0 : opening;
  }

 private:
  std::array<Window, 2> newest_two_;
};

}  // namespace cudabpf
