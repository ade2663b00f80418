// The processor's time stamp counter, converted to CLOCK_MONOTONIC. Reading it takes half of what
// reading the clock does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cudabpf {

class TickClock {
 public:
  // What both were at one moment.
  struct Moment {
    std::uint64_t ticks = 0, ns = 0;
  };

  // Whether it ticks evenly, and alike on all processors, as far as the kernel knows.
  static bool is_reliable();
  static Moment now();

  // Moments come in their order. The times between two of them are exact to how exactly these were
  // taken, whatever the counter's rate.
  void add(Moment moment);
  std::uint64_t ns(std::uint64_t ticks) const;

  std::size_t moments() const { return moments_.size(); }

 private:
  void thin_out();

  std::vector<Moment> moments_;
  double rate_ = 0;  // ns a tick, between the last two
};

}  // namespace cudabpf
