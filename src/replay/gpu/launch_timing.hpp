// How long a launch takes by itself.
#pragma once

#include <cstdint>

#include "replay/gpu/burst.hpp"
#include "replay/gpu/driver.hpp"
#include "replay/gpu/player.hpp"
#include "replay/messages.hpp"

namespace cudabpf::replay {

class LaunchTiming {
 public:
  LaunchTiming(const Driver& driver, Player& player) : driver_(&driver), player_(&player) {}

  Result<> prepare(int device);
  // Warm: launches that follow each other, so that the L2 cache has what the one before left there.
  // If the program let a launch begin before the one before it has ended (programmatic stream
  // serialization), they overlap here, too. Cold: the same with the L2 cache overwritten before
  // each of them, less the time of overwriting it.
  Result<IsolatedTime> time(std::size_t step, std::uint32_t samples);

 private:
  Result<std::uint32_t> repetitions(const Burst::Work& work);
  Result<> time_warm(const Burst::Work& work, std::uint32_t samples, IsolatedTime& times);
  Result<> time_cold(const Burst::Work& work, std::uint32_t samples, IsolatedTime& times);

  const Driver* driver_;
  Player* player_;
  Handle stream_ = nullptr;
  DevicePtr flushed_ = 0;  // written to overwrite the L2 cache
  std::size_t flushed_size_ = 0;
};

}  // namespace cudabpf::replay
