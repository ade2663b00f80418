// What people see while a trace is made: lines, and below them one that is redrawn in place, gone
// at the end. A thread of its own writes it: a terminal may be stopped (Ctrl-S) and a pipe full,
// and nobody who has something to say is to wait for them, least of all the ring's reader.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "util/console/terminal.hpp"

namespace cudabpf {

class Screen {
 public:
  // While it lives, messages of log:: are told here; so there is one at a time. `hurry_fd` becomes
  // readable when a signal has come, and nothing is to be waited for any more.
  explicit Screen(int fd, int hurry_fd = -1);
  // When all is written, or will not be soon though a signal has come.
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // None of these waits, and any thread may call them.
  bool offer(std::string_view lines);  // false: too much waits already; it will not be shown
  void tell(std::string_view lines);   // there is more room for these; what is left out is counted
  void set_status(std::string line);   // empty: none. It is cut to the terminal's width

  const Terminal& terminal() const { return terminal_; }

 private:
  struct Shared;  // with the writer, which may outlive this where a terminal stays stopped
  static void write_for(const std::shared_ptr<Shared>& shared);
  bool all_written();

  const Terminal terminal_;
  const int hurry_fd_;
  std::shared_ptr<Shared> shared_;
  std::thread writer_;
};

}  // namespace cudabpf
