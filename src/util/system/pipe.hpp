// A pipe whose ends close themselves, and are not inherited by programs that are started.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

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

// False: nobody reads it any more.
inline bool write_all(const Fd& to_write, std::string_view text) {
  while (!text.empty()) {
    ssize_t written = ::write(to_write.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace cudabpf
