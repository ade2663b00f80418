// How long the GPU takes for a tape, by events of the driver.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/gpu/driver.hpp"
#include "replay/gpu/player.hpp"
#include "replay/messages.hpp"

namespace cudabpf::replay {

class TapeTiming {
 public:
  TapeTiming(const Driver& driver, Player& player) : driver_(&driver), player_(&player) {}

  Result<> prepare();
  // From the beginning of the first step on any stream to the end of the last one. Where the GPU
  // waits for the host to hand it work, that is part of it.
  Result<std::uint64_t> run_ns();
  // Each launch by itself: an event before and one after it, which the GPU records one after the
  // other, so that short kernels seem to take a microsecond or so longer. `launches` has for each
  // step the number of its distinct launch.
  Result<std::vector<LaunchTime>> launches_ns(const std::vector<std::uint32_t>& launches);

 private:
  const Driver* driver_;
  Player* player_;
  Handle clock_ = nullptr, begin_ = nullptr, end_ = nullptr;
  std::vector<Handle> ends_;  // of streams
};

}  // namespace cudabpf::replay
