// How long something on the network may take.
#pragma once

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>

#include "util/result.hpp"

namespace cudabpf::http {

struct Patience {
  using Clock = std::chrono::steady_clock;

  Clock::time_point until;
  int end = -1;  // whoever waits stops at once when this can be read from; -1: nothing ends it

  static Patience of(Clock::duration time, int end = -1) { return {Clock::now() + time, end}; }

  // A part of what is left, for one of several attempts.
  Patience shared_by(std::size_t attempts) const {
    return of((until - Clock::now()) / static_cast<long>(attempts), end);
  }

  // Waits for these events, and returns those that came.
  Result<short> wait(int fd, short events) const {
    for (;;) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
      if (left.count() <= 0) return Error{"it took too long"};
      pollfd polled[] = {{fd, events, 0}, {end, POLLIN, 0}};
      int came = ::poll(polled, 2, static_cast<int>(std::min<long>(left.count(), 60'000)));
      if (came < 0 && errno != EINTR) return errno_error("waiting for the network");
      if (came > 0 && polled[1].revents) return Error{"it was given up"};
      if (came > 0) return polled[0].revents;
    }
  }
};

}  // namespace cudabpf::http
