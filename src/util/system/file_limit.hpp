// How many files this process may have open.
#pragma once

#include <sys/resource.h>

namespace cudabpf {

// As many as it may at all, instead of as many as is usual.
inline void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace cudabpf
