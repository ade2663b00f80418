#include "replay/energy/predicted_energy.hpp"

#include <algorithm>
#include <cmath>

#include "replay/microseconds.hpp"
#include "replay/times/times_compared.hpp"

namespace cudabpf::replay {

namespace {

constexpr double STEP_S = 0.1;  // of the counter, at most: it steps ten times a second

double seconds_of(const Energy& energy) { return static_cast<double>(energy.window_ns) / 1e9; }
double joules_of(const Energy& energy) { return static_cast<double>(energy.millijoules) / 1e3; }
double watts_of(const Energy& energy) { return joules_of(energy) / seconds_of(energy); }
bool is_known(const std::optional<Energy>& energy) {
  return energy && energy->window_ns && energy->rounds;
}

// Joules that a round used above idle.
double above_idle(const Energy& energy, double idle_w) {
  return (watts_of(energy) - idle_w) * seconds_of(energy) / static_cast<double>(energy.rounds);
}

// Where the launch's time in turn lies: at 0 warm, at 1 cold. Where these are the same, it does not
// matter much, and it is halfway.
double share_of_cold(const std::optional<IsolatedTime>& time) {
  constexpr double HALFWAY = 0.5, LEAST_SPREAD = 0.02;
  if (!time || time->in_turn_ns.empty() || time->warm_ns.empty() || time->cold_ns.empty())
    return HALFWAY;
  double warm = median_us(time->warm_ns), spread = median_us(time->cold_ns) - warm;
  if (spread < warm * LEAST_SPREAD) return HALFWAY;
  return std::clamp((median_us(time->in_turn_ns) - warm) / spread, 0.0, 1.0);
}

LaunchEnergy energy_of(const IsolatedLaunch& isolated, const std::optional<double>& idle_w) {
  const IsolatedEnergy& energy = *isolated.energy;
  LaunchEnergy launch;
  auto launches = static_cast<double>(energy.warm->rounds);
  launch.launches = energy.warm->rounds;
  launch.window_s = seconds_of(*energy.warm);
  launch.watts = watts_of(*energy.warm);
  launch.joules = joules_of(*energy.warm) / launches;
  launch.error_j = launch.watts * STEP_S / launches;
  if (!idle_w) return launch;
  launch.warm_j = above_idle(*energy.warm, *idle_w);
  launch.in_turn_j = launch.warm_j;
  if (is_known(energy.emptied) && is_known(energy.emptying)) {
    launch.cold_j = above_idle(*energy.emptied, *idle_w) - above_idle(*energy.emptying, *idle_w);
    launch.in_turn_j = std::lerp(*launch.warm_j, *launch.cold_j, share_of_cold(isolated.time));
  }
  launch.in_turn_j = std::max(*launch.in_turn_j, 0.0);
  return launch;
}

void predict(const PredictedEnergy& energy, MeasuredIteration& iteration) {
  if (!energy.idle_w) return;
  iteration.predicted_j = *energy.idle_w * iteration.seconds + energy.above_idle_j;
  iteration.error_percent = error_percent(*iteration.predicted_j, iteration.joules);
}

}  // namespace

PredictedEnergy predict_energy(const IsolatedReplay& replay, const Tape& tape,
                               const Manifest& manifest) {
  PredictedEnergy energy;
  auto distinct = distinct_launches(tape, manifest);
  for (const DistinctLaunch& launch : distinct) energy.not_measured += launch.count;
  for (const Step& step : tape.steps()) energy.copies += step.copy || step.set;
  if (is_known(replay.idle)) {
    energy.idle_w = watts_of(*replay.idle);
    energy.idle_window_s = seconds_of(*replay.idle);
  }
  for (const IsolatedLaunch& one : replay.launches) {
    if (!one.energy || !is_known(one.energy->warm)) continue;
    LaunchEnergy launch = energy_of(one, energy.idle_w);
    launch.launch = one.launch;
    launch.count = distinct[one.launch].count;
    energy.above_idle_j += launch.in_turn_j.value_or(0) * static_cast<double>(launch.count);
    energy.measured += launch.count;
    energy.not_measured -= launch.count;
    energy.launches.push_back(launch);
  }
  std::stable_sort(energy.launches.begin(), energy.launches.end(),
                   [](const LaunchEnergy& a, const LaunchEnergy& b) {
                     return a.joules * static_cast<double>(a.count) >
                            b.joules * static_cast<double>(b.count);
                   });
  if (is_known(replay.repeated)) {
    const Energy& measured = *replay.repeated;
    MeasuredIteration whole;
    whole.iterations = static_cast<double>(measured.rounds);
    whole.window_s = seconds_of(measured);
    whole.joules = joules_of(measured) / whole.iterations;
    whole.error_j = watts_of(measured) * STEP_S / whole.iterations;
    whole.seconds = whole.window_s / whole.iterations;
    predict(energy, whole);
    energy.tape = whole;
  }
  energy.no_energy = replay.no_energy.value_or("");
  return energy;
}

void add_program(PredictedEnergy& energy, const ProgramEnergy& program) {
  energy.program = program.each;
  if (energy.program) predict(energy, *energy.program);
  energy.no_program = program.why_not;
}

}  // namespace cudabpf::replay
