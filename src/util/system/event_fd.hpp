// What one thread sets and another waits for: its descriptor can be read from while it is set.
#pragma once

#include <sys/eventfd.h>

#include "util/system/fd.hpp"

namespace cudabpf {

class EventFd {
 public:
  EventFd() = default;
  // Invalid, with errno, if the system has none left.
  static EventFd make() {
    EventFd made;
    made.fd_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return made;
  }

  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  void set() const { [[maybe_unused]] int failed = ::eventfd_write(fd_.get(), 1); }
  // Returns whether it was set.
  bool clear() const {
    eventfd_t count = 0;
    return ::eventfd_read(fd_.get(), &count) == 0;
  }

 private:
  Fd fd_;
};

}  // namespace cudabpf
