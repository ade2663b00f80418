// How long a launch takes by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "replay/gpu/driver.hpp"
#include "replay/gpu/player.hpp"
#include "replay/messages.hpp"
#include "replay/progress.hpp"
#include "replay/timing/burst.hpp"
#include "replay/timing/cache_flush.hpp"
#include "replay/timing/power_meter.hpp"

namespace cudabpf::replay {

class LaunchTiming {
 public:
  // `bring_back`: makes memory what it was before the launch was timed. Nothing: it cannot.
  using BringBack = std::function<Result<>()>;
  LaunchTiming(const Driver& driver, Player& player, Progress& progress)
      : driver_(&driver), player_(&player), progress_(&progress), flush_(driver) {}

  Result<> prepare(int device);
  // Warm: launches that follow each other, so that the L2 cache has what the one before left there.
  // If the program let a launch begin before the one before it has ended (programmatic stream
  // serialization), they overlap here, too. Cold: the same with the L2 cache and those of code
  // emptied before each of them, less the time of that. In turn: the same with the launches that
  // come before it on the tape run in between, less the time of both: the cache has what these have
  // left, as in the program, and weights that nobody has read since the last iteration are not
  // there. Those run more often than in the program, too, so it is done only where memory can be
  // brought back. Small fills right before a launch are run before each of its launches, too, and
  // not counted.
  Result<IsolatedTime> time(std::size_t step, std::uint32_t samples, const BringBack& bring_back);
  // What the GPU uses while it does nothing but this launch: warm, and after the cache was emptied.
  // A round is a launch.
  Result<IsolatedEnergy> energy(std::size_t step, std::uint32_t window_ms, PowerMeter& meter);

 private:
  Result<std::uint32_t> repetitions(const Burst::Work& work);
  Result<std::optional<Energy>> energy_of(const Burst::Work& work, std::uint32_t window_ms,
                                          PowerMeter& meter);
  // So that a launch that hangs is told from one of many that are timed.
  Result<std::uint64_t> ns_of(Burst& burst);
  Result<> time_warm(const Burst::Work& work, std::uint32_t samples, IsolatedTime& times);
  // How much longer `before` and the work take than `before` alone.
  Result<> time_after(const Burst::Work& before, const Burst::Work& work, std::uint32_t count,
                      std::uint32_t samples, std::vector<std::uint64_t>& ns,
                      const BringBack& bring_back);
  Result<> time_in_turn(std::size_t step, std::uint32_t samples, const BringBack& bring_back,
                        IsolatedTime& times);
  // Launches of the same stream that come right before it, and are run, with small fills between
  // them and it.
  std::vector<std::size_t> before(std::size_t step) const;
  Burst::Work work_of(std::vector<std::size_t> steps) const;

  const Driver* driver_;
  Player* player_;
  Progress* progress_;
  Handle stream_ = nullptr;
  CacheFlush flush_;
  std::optional<Energy> emptying_;  // the same for each launch
};

}  // namespace cudabpf::replay
