// A pipe whose ends close themselves, and are not inherited by programs that are started.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

struct Pipe {
  Fd to_read, to_write;
};

inline Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("making a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace cudabpf
