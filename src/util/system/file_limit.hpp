// How many files this process may have open.
#pragma once

#include <sys/resource.h>

namespace cudabpf {

// Raises the limit from the usual number to the highest that is allowed.
inline void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace cudabpf
