// A terminal taken as a whole: its alternate screen, no cursor, keys as they are pressed. However
// the process ends, but for SIGKILL, the terminal is as it was before.
#pragma once

#include <csignal>
#include <string_view>

#include "util/console/frame.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

// There is one to take: both are the same terminal, it is the one that controls this process, and
// TERM does not say that it cannot be drawn on.
bool can_take_terminal(int input, int output);
// Two descriptors are of the same device.
bool are_same_terminal(int one, int other);

// SIGTSTP, SIGCONT and SIGWINCH as something to poll. For the main thread, before it starts others:
// it blocks them for them, too.
class ScreenSignals {
 public:
  ScreenSignals();
  ~ScreenSignals();
  ScreenSignals(const ScreenSignals&) = delete;
  ScreenSignals& operator=(const ScreenSignals&) = delete;
  int fd() const { return fd_.get(); }

 private:
  sigset_t before_{};
  Fd fd_;
};

// For one thread, that blocks all signals; there is one at a time. Ctrl-C, Ctrl-\ and Ctrl-Z stay
// signals, which others may handle.
class FullScreen {
 public:
  FullScreen(int input, int output);
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  // In the background nothing may be drawn, read or set: whoever does is stopped, or disturbs.
  bool is_in_foreground() const;
  // Takes the terminal, again if others may have changed it.
  void take();
  void give_back();
  bool is_taken() const;
  ScreenFrame::Size size() const;
  // Waits for a terminal that takes nothing.
  void write(std::string_view text) const;

  // What came of ScreenSignals. A stop stops all of the process, with the terminal given back, and
  // this returns once it goes on.
  enum class Came { nothing, resized, continued };
  Came handle(int signals_fd);

  // For any thread, while that one may wait in write(): gives the terminal back within a second,
  // and goes on where Ctrl-S had stopped it.
  static void give_back_now();

 private:
  void stop();
  const int input_, output_;
};

}  // namespace cudabpf
