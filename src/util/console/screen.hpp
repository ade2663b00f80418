// What people see during a trace: lines and, below them, a status line that is redrawn in place and
// removed at the end. A thread of its own writes them, because a terminal may be stopped (Ctrl-S)
// or a pipe full, and no other thread may wait for that, least of all the ring's reader.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "util/console/log.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf {

class Screen final : public log::Outlet {
 public:
  // While it lives, messages of log:: go here, so there is only one at a time. `hurry_fd` becomes
  // readable once a signal has come and waiting should stop.
  explicit Screen(int fd, int hurry_fd = -1);
  // Waits until everything is written, but only briefly once a signal has come.
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Any thread may call these; none of them waits.
  bool offer(std::string_view lines);  // false: too much is waiting, so they will not be shown
  void show(std::string_view lines) override;  // has more room; counts what it leaves out
  void set_status(std::string line);           // empty: none. It is cut to the terminal's width

  // Until release() nothing is written on a terminal: another draws there. `instead` gets the lines
  // of show(), on the calling thread; it must not wait, nor use this.
  void hold(std::function<void(std::string_view lines)> instead);
  void release();

  const Terminal& terminal() const { return terminal_; }

 private:
  struct Shared;  // with the writer, which may outlive this if a terminal stays stopped
  static void write_for(const std::shared_ptr<Shared>& shared);
  bool all_written();

  const Terminal terminal_;
  const int hurry_fd_;
  std::shared_ptr<Shared> shared_;
  std::thread writer_;
};

}  // namespace cudabpf
