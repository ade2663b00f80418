// A thread that waits for the network, and ends when it is told to. It has no rights, and signals
// do not reach it; threads that it starts inherit both.
#pragma once

#include <string>
#include <thread>
#include <utility>

#include "util/result.hpp"
#include "util/system/event_fd.hpp"
#include "util/system/pidfd.hpp"
#include "util/system/privileges.hpp"
#include "util/system/threads.hpp"

namespace cudabpf {

class StoppableThread {
 public:
  StoppableThread() = default;
  ~StoppableThread() { stop(); }
  StoppableThread(const StoppableThread&) = delete;
  StoppableThread& operator=(const StoppableThread&) = delete;

  // `purpose` is what an error names.
  template <typename Work>
  Result<> start(const char* purpose, Work work) {
    stop_ = EventFd::make();
    if (!stop_) return errno_error(purpose);
    thread_ = thread_without_signals([work = std::move(work)]() mutable {
      privileges::keep_only({});
      work();
    });
    return ok();
  }
  // Returns when it has ended.
  void stop() {
    if (!thread_.joinable()) return;
    stop_.set();
    thread_.join();
  }

  // For the thread: can be read from when it is time to end.
  int stop_fd() const { return stop_.get(); }
  bool is_stopping() const { return is_readable(stop_.get()); }

 private:
  EventFd stop_;
  std::thread thread_;
};

}  // namespace cudabpf
