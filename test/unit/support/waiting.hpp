// Waits for a descriptor, but not for ever.
#pragma once

#include <poll.h>

// Is there something to read, within this time?
inline bool is_readable(int fd, int milliseconds = 0) {
  pollfd waited{fd, POLLIN, 0};
  return ::poll(&waited, 1, milliseconds) == 1 && (waited.revents & POLLIN);
}
