// The processor's time stamp counter, converted to CLOCK_MONOTONIC. Reading it takes half as long
// as reading the clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cudabpf {

class TickClock {
 public:
  // The values of both at one moment.
  struct Moment {
    std::uint64_t ticks = 0, ns = 0;
  };

  // Whether, according to the kernel, it ticks evenly, and alike on all processors.
  static bool is_reliable();
  static Moment now();

  // Moments come in their order. Times between two of them are as exact as these were taken,
  // whatever the counter's rate.
  void add(Moment moment);
  std::uint64_t ns(std::uint64_t ticks) const;

  std::size_t moments() const { return moments_.size(); }

 private:
  void thin_out();

  std::vector<Moment> moments_;
  double rate_ = 0;  // ns a tick, between the last two
};

}  // namespace cudabpf
