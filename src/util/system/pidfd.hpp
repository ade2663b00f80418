// A descriptor of a process, which is readable once the process has ended.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "util/system/fd.hpp"

namespace cudabpf {

// Invalid, with errno, if there is no such process (ESRCH), or the kernel is older than 5.3.
inline Fd open_pidfd(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

}  // namespace cudabpf
