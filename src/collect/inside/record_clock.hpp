// The clock of the records that the library inside makes.
#pragma once

#include <cstdint>

#include "cudabpf/inside.h"
#include "util/system/clock.hpp"
#include "util/system/tick_clock.hpp"

namespace cudabpf {

class RecordClock {
 public:
  explicit RecordClock(abi::ci_clock is) : is_(is) {
    if (is_ == abi::CI_TICKS) ticks_.add(TickClock::now());
  }

  // The cheapest one that is available here.
  static abi::ci_clock best() {
    return TickClock::is_reliable() ? abi::CI_TICKS : abi::CI_MONOTONIC;
  }

  // The time now. Every time read before can then be converted exactly.
  std::uint64_t now() {
    if (is_ == abi::CI_MONOTONIC) return now_ns(CLOCK_MONOTONIC);
    TickClock::Moment now = TickClock::now();
    ticks_.add(now);
    return now.ticks;
  }
  // A record's time as CLOCK_MONOTONIC.
  std::uint64_t ns(std::uint64_t time) const {
    return is_ == abi::CI_MONOTONIC ? time : ticks_.ns(time);
  }

 private:
  const abi::ci_clock is_;
  TickClock ticks_;
};

}  // namespace cudabpf
