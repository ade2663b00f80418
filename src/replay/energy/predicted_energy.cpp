#include "replay/energy/predicted_energy.hpp"

#include <algorithm>

#include "replay/microseconds.hpp"
#include "replay/times/times_compared.hpp"

namespace cudabpf::replay {

namespace {

constexpr double STEP_S = 0.1;  // of the counter, at most: it steps ten times a second

double seconds_of(const Energy& energy) { return static_cast<double>(energy.window_ns) / 1e9; }
double joules_of(const Energy& energy) { return static_cast<double>(energy.millijoules) / 1e3; }
double watts_of(const Energy& energy) { return joules_of(energy) / seconds_of(energy); }
bool is_handed(Action action) {
  return action == Action::launch || action == Action::graph || action == Action::copy ||
         action == Action::set;
}
bool is_known(const std::optional<Energy>& energy) { return energy && energy->window_ns; }

// How much longer a launch takes in its turn than with a warm cache.
double stretch_of(const std::optional<IsolatedTime>& time) {
  if (!time || time->in_turn_ns.empty() || time->warm_ns.empty()) return 1;
  double warm = median_us(time->warm_ns);
  return warm > 0 ? median_us(time->in_turn_ns) / warm : 1;
}

LaunchEnergy energy_of(const IsolatedLaunch& isolated, const std::optional<double>& idle_w) {
  const Energy& measured = *isolated.energy;
  LaunchEnergy launch;
  auto launches = static_cast<double>(measured.rounds);
  launch.launches = measured.rounds;
  launch.window_s = seconds_of(measured);
  launch.watts = watts_of(measured);
  launch.joules = joules_of(measured) / launches;
  launch.error_j = launch.watts * STEP_S / launches;
  if (!idle_w) return launch;
  launch.above_idle_j = (launch.watts - *idle_w) * launch.window_s / launches;
  launch.in_turn_j = std::max(*launch.above_idle_j, 0.0) * stretch_of(isolated.time);
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
  for (const bundle::Operation& operation : tape.operations())
    energy.handed += is_handed(operation.action);
  if (energy.idle_w && is_known(replay.launching) && replay.launching->rounds) {
    double above = std::max(watts_of(*replay.launching) - *energy.idle_w, 0.0);
    energy.launching_j =
        above * seconds_of(*replay.launching) / static_cast<double>(replay.launching->rounds);
    energy.above_idle_j = *energy.launching_j * static_cast<double>(energy.handed);
  }
  for (const IsolatedLaunch& one : replay.launches) {
    if (!is_known(one.energy) || !one.energy->rounds) continue;
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
  if (is_known(replay.repeated) && replay.repeated->rounds) {
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
