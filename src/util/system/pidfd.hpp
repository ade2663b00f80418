// A descriptor of a process, which is readable once the process has ended.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

#include "util/system/fd.hpp"

namespace cudabpf {

// Invalid, with errno, if there is no such process (ESRCH), or the kernel is older than 5.3.
inline Fd open_pidfd(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

// True if the process has ended, or, for a signalfd, if a signal has come.
inline bool is_readable(int fd) {
  pollfd polled{fd, POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
}

// Also if its parent has not waited for it yet. Its last thread has ended then.
inline bool has_ended(pid_t pid, const Fd& pidfd) {
  if (!pidfd) return kill(pid, 0) != 0 && errno == ESRCH;
  return is_readable(pidfd.get());
}
inline bool has_ended(pid_t pid) { return has_ended(pid, open_pidfd(pid)); }

}  // namespace cudabpf
