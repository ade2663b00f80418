// SIGINT and SIGTERM as something to wait for.
#pragma once

#include <csignal>

#include "util/fd.hpp"

namespace cudabpf::cli {

class Signals {
 public:
  Signals();   // blocks them for this thread and those it starts
  ~Signals();  // and gives them back

  int fd() const { return fd_.get(); }

  struct Got {
    int signal = 0;  // 0: none
    // The terminal sends Ctrl-C to everybody in the foreground, so the command has it too.
    bool from_terminal = false;
  };
  Got read();

 private:
  sigset_t before_{};
  Fd fd_;
};

}  // namespace cudabpf::cli
