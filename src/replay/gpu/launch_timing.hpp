// How long a launch takes by itself.
#pragma once

#include <cstdint>

#include "replay/gpu/burst.hpp"
#include "replay/gpu/driver.hpp"
#include "replay/gpu/player.hpp"
#include "replay/gpu/power_meter.hpp"
#include "replay/messages.hpp"
#include "replay/progress.hpp"

namespace cudabpf::replay {

class LaunchTiming {
 public:
  LaunchTiming(const Driver& driver, Player& player) : driver_(&driver), player_(&player) {}

  Result<> prepare(int device);
  // Warm: launches that follow each other, so that the L2 cache has what the one before left there.
  // If the program let a launch begin before the one before it has ended (programmatic stream
  // serialization), they overlap here, too. Cold: the same with the L2 cache overwritten before
  // each of them, less the time of overwriting it. In turn: the same with the launches that come
  // before it on the tape run after the cache was overwritten, less the time of both: the cache has
  // what these have left, as in the program, and weights that nobody has read since the last
  // iteration are not there.
  // `alone`: it has no time in turn.
  Result<IsolatedTime> time(std::size_t step, std::uint32_t samples, bool alone);
  // What the GPU uses while it does nothing but this launch, warm. A round is a launch.
  Result<std::optional<Energy>> energy(std::size_t step, const IsolatedTime& times,
                                       std::uint32_t window_ms, PowerMeter& meter,
                                       Progress& progress);

 private:
  Result<std::uint32_t> repetitions(const Burst::Work& work);
  Result<> time_warm(const Burst::Work& work, std::uint32_t samples, IsolatedTime& times);
  // How much longer `before` and the work take than `before` alone.
  Result<> time_after(const Burst::Work& before, const Burst::Work& work, std::uint32_t count,
                      std::uint32_t samples, std::vector<std::uint64_t>& ns);
  // Launches of the same stream that come right before it, and are run.
  std::vector<std::size_t> launches_before(std::size_t step) const;

  const Driver* driver_;
  Player* player_;
  Handle stream_ = nullptr;
  DevicePtr flushed_ = 0;  // written to overwrite the L2 cache
  std::size_t flushed_size_ = 0;
};

}  // namespace cudabpf::replay
