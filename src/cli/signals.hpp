// SIGINT, SIGQUIT, SIGTERM and SIGHUP as something to wait for; SIGUSR1, if it is wanted.
#pragma once

#include <csignal>

#include "util/system/fd.hpp"

namespace cudabpf::cli {

class Signals {
 public:
  Signals();   // blocks them for this thread and those it starts
  ~Signals();  // and unblocks them, except after keep_blocked()

  int fd() const { return fd_.get(); }

  struct Got {
    int signal = 0;  // 0: none
    // The terminal sends Ctrl-C to every process in the foreground, so the command got it, too.
    bool from_terminal = false;
  };
  Got read();

  // From here on SIGUSR1 is something to wait for, too: it makes a request, and ends nothing. To be
  // called before threads are started.
  void take_requests();
  int request_fd() const { return request_fd_.get(); }
  bool requested();  // since the last call

  // The trace ends, because of a signal or not: from here on read() is not called, and a signal
  // that came or comes makes hurry_fd() readable, for code that waits for a pipe's reader or a
  // terminal.
  void leave_to_others(bool one_came);
  int hurry_fd() const { return hurry_fd_.get(); }
  // Until the process ends: another Ctrl-C must not replace its status.
  void keep_blocked() { kept_ = true; }

 private:
  sigset_t before_{};
  Fd fd_;
  Fd request_fd_;
  Fd hurry_fd_;  // an epoll of what is readable when it is time to hurry
  Fd came_;
  bool kept_ = false;
};

}  // namespace cudabpf::cli
