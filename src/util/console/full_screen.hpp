// A terminal taken as a whole: its alternate screen, no cursor, keys as they are pressed. Whatever
// ends the process, except SIGKILL, the terminal is restored.
#pragma once

#include <csignal>
#include <string_view>

#include "util/console/frame.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

// True if both are one terminal, which controls this process, and TERM does not say that it cannot
// be drawn on.
bool can_take_terminal(int input, int output);
// Two descriptors are of the same device.
bool are_same_terminal(int one, int other);

// SIGTSTP, SIGCONT and SIGWINCH as something to poll. For the main thread, before it starts others:
// it blocks them for those, too.
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

// For one thread, which blocks all signals; there is one at a time. Ctrl-C, Ctrl-\ and Ctrl-Z stay
// signals, which other threads may handle.
class FullScreen {
 public:
  FullScreen(int input, int output);
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  // In the background nothing may be drawn, read or set: the process would be stopped, or disturb
  // others.
  bool is_in_foreground() const;
  // Takes the terminal, again if others may have changed it.
  void take();
  void give_back();
  bool is_taken() const;
  ScreenFrame::Size size() const;
  // Waits for a terminal that takes nothing.
  void write(std::string_view text) const;

  // Handles what came from ScreenSignals. A stop stops the whole process, with the terminal given
  // back, and this returns once the process continues.
  enum class Came { nothing, resized, continued };
  Came handle(int signals_fd);

  // For any thread, while the drawing thread may wait in write(): gives the terminal back within a
  // second, and makes it go on if Ctrl-S had stopped it.
  static void give_back_now();

 private:
  void stop();
  const int input_, output_;
};

}  // namespace cudabpf
