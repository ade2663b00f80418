#include "analyze/diff/measure.hpp"

#include <algorithm>
#include <cmath>

#include "analyze/diff/gpu_measures.hpp"

namespace cudabpf::analyze {

namespace {

using Place = Measure::Place;
using Counts = Measure::Counts;
using Figure = std::optional<std::uint64_t>;
using Parts = std::vector<PartFigure>;
using Of = const Measures&;

constexpr Needs ITERATIONS = Need::launches | Need::waits | Need::names | Need::processes;
constexpr Needs ITERATION_TIMES = ITERATIONS | Need::times;

std::uint64_t millionths(std::uint64_t part, std::uint64_t whole) {
  // A trace may claim that calls took more time than there was.
  return static_cast<std::uint64_t>(std::llround(share(std::min(part, whole), whole) * 10'000));
}

Figure mean(const Measures::Timed& timed) {
  if (!timed.calls) return std::nullopt;
  return timed.time / timed.calls;
}

Figure duration(Of of) { return of.facts().recorded_time(); }
Figure calls(Of of) { return of.errors().calls; }
Figure time_in_calls(Of of) { return of.in_calls().time; }
Figure waiting(Of of) { return of.waiting().time; }
Figure launch_call_time(Of of) { return mean(of.launching()); }
Figure failed_calls(Of of) { return of.errors().failed_calls; }
Figure open_calls(Of of) { return of.errors().calls_open; }
Figure bad_exits(Of of) { return of.errors().bad_exits; }
Figure captured_launches(Of of) { return of.kernels().totals().captured; }
Figure graph_launches(Of of) { return of.kernels().totals().graphs; }
Figure kernels(Of of) { return of.kernels().figures(Kernels::By::name).size(); }
Figure kernel_runs(Of of) { return of.kernels().totals().runs(); }
Figure memory_peak(Of of) { return of.gpu_peak(); }
Figure not_followed(Of of) { return of.memory_left_out().blocks; }

// Launches of kernels and graphs that gave the GPU work.
Figure launches(Of of) {
  const Kernels::Totals& totals = of.kernels().totals();
  return totals.launches - totals.captured + totals.graphs;
}

Figure errors(Of of) {
  std::uint64_t of_gpus = 0;
  for (const Errors::Failure& error : of.errors().gpu_errors) of_gpus += error.count;
  return of.errors().failed_calls - of.errors().usual_failures + of_gpus;
}

Figure operations(Of of) {
  std::uint64_t count = 0;
  for (const Ioctls::Figures& kind : of.ioctls().operations) count += kind.count;
  return count;
}

Figure idle(Of of) {
  const Idle::OfProcess* process = of.execution().process();
  if (!process || !process->working_time) return std::nullopt;
  return millionths(process->idle.total(), process->working_time);
}

// On the process's busiest GPU, from its first work to its last.
Figure measured_idle(Of of) {
  const Idle::OfProcess* process = of.execution().process();
  const auto* gpu = process ? of.execution().gpus().of_process(process->number) : nullptr;
  if (!gpu || !gpu->window()) return std::nullopt;
  return millionths(gpu->idle_time(), gpu->window());
}

// Null: none was timed.
const Iterations* timed(Of of) {
  const Iterations& iterations = of.execution().iterations();
  return iterations.sorted_times.empty() ? nullptr : &iterations;
}

template <auto Member>
Figure if_found(Of of) {
  const Iterations& iterations = of.execution().iterations();
  if (iterations.found == Iterations::Found::none) return std::nullopt;
  return iterations.*Member;
}

template <auto Member>
Figure share_of_iterations(Of of) {
  const Iterations* iterations = timed(of);
  if (!iterations) return std::nullopt;
  return millionths(iterations->spent.*Member, iterations->times.total());
}

Figure iteration_mean(Of of) {
  const Iterations* iterations = timed(of);
  if (!iterations) return std::nullopt;
  return iterations->times.mean();
}

template <int Percent>
Figure iteration_quantile(Of of) {
  const Iterations* iterations = timed(of);
  if (!iterations) return std::nullopt;
  return quantile_of(iterations->sorted_times, Percent / 100.0);
}

Median iteration_median(Of of) { return median_of(of.execution().iterations().sorted_times); }

template <typename Value>
Parts of_functions(Of of, Value value) {
  Parts parts;
  for (const Calls::Figures& function : of.functions())
    if (Figure figure = value(function)) parts.push_back({function.name, *figure});
  return parts;
}

Parts calls_of_functions(Of of) {
  return of_functions(of, [](const auto& function) -> Figure { return function.count; });
}
Parts time_of_functions(Of of) {
  return of_functions(of,
                      [](const auto& function) -> Figure { return function.durations.total(); });
}
Parts call_time_of_functions(Of of) {
  return of_functions(of, [](const auto& function) -> Figure {
    if (!function.durations.count()) return std::nullopt;
    return function.durations.mean();
  });
}

template <auto Member>
Parts of_directions(Of of) {
  Parts parts;
  for (const Measures::Transfers& transfers : of.transfers())
    parts.push_back({transfers.name, transfers.*Member});
  std::sort(parts.begin(), parts.end(),
            [](const auto& one, const auto& other) { return one.name < other.name; });
  return parts;
}

template <auto Member>
Figure of_all_directions(Of of) {
  std::uint64_t sum = 0;
  for (const Measures::Transfers& transfers : of.transfers()) sum += transfers.*Member;
  return sum;
}

Parts of_kinds(Of of) {
  Parts parts;
  for (const Measures::Peak& peak : of.peaks()) parts.push_back({peak.name, peak.bytes});
  return parts;
}

Parts of_phases(Of of) {
  Parts parts;
  for (const Phase& phase : of.execution().phases().phases)
    if (phase.seen) parts.push_back({phase.name, phase.time});
  return parts;
}

using Transfers = Measures::Transfers;

const Measure MEASURES[] = {
    {.name = "duration",
     .title = "duration",
     .unit = Unit::time,
     .needs = Need::the_end,
     .whole = duration},
    {.name = "calls",
     .title = "calls",
     .needs = Need::calls,
     .whole = calls,
     .part_is = "function",
     .parts = calls_of_functions,
     .without_is_zero = true},
    {.name = "time-in-calls",
     .title = "time in calls",
     .unit = Unit::time,
     .needs = Need::calls | Need::times,
     .whole = time_in_calls,
     .part_is = "function",
     .parts = time_of_functions,
     .without_is_zero = true},
    {.name = "call-time",
     .title = "mean time of a call",
     .unit = Unit::time,
     .needs = Need::calls | Need::times,
     .part_is = "function",
     .parts = call_time_of_functions},
    {.name = "waiting",
     .title = "waiting for the GPU",
     .unit = Unit::time,
     .needs = Need::waits | Need::times,
     .whole = waiting},
    {.name = "errors",
     .title = "errors",
     .needs = Need::calls | Need::results | Need::gpu_errors,
     .counts = Counts::most,
     .whole = errors},
    {.name = "failed-calls",
     .title = "calls that failed",
     .needs = Need::calls | Need::results,
     .counts = Counts::most,
     .whole = failed_calls},
    {.name = "open-calls",
     .title = "calls that did not return",
     .needs = Need::calls | Need::times,
     .counts = Counts::most,
     .whole = open_calls},
    {.name = "launches", .title = "launches", .needs = Need::launches, .whole = launches},
    {.name = "graph-launches",
     .title = "graph launches among them",
     .needs = Need::launches,
     .whole = graph_launches},
    {.name = "captured-launches",
     .title = "launches captured into graphs",
     .needs = Need::launches,
     .whole = captured_launches},
    {.name = "kernel-runs",
     .title = "kernels run",
     .needs = Need::launches | Need::results | Need::graphs,
     .unlike = "launches",
     .whole = kernel_runs},
    {.name = "kernels",
     .title = "different kernels",
     .needs = Need::launches | Need::names | Need::graphs,
     .whole = kernels},
    {.name = "launch-call-time",
     .title = "launching call, mean",
     .absent = "timed call that launches a kernel",
     .unit = Unit::time,
     .needs = Need::launches | Need::times,
     .whole = launch_call_time},
    {.name = "transfers",
     .title = "transfers",
     .needs = Need::copies | Need::results,
     .whole = of_all_directions<&Transfers::count>,
     .part_is = "direction",
     .part_title = "transfers {}",
     .parts = of_directions<&Transfers::count>,
     .without_is_zero = true},
    {.name = "transfer-bytes",
     .title = "bytes transferred",
     .unit = Unit::bytes,
     .needs = Need::copies | Need::results,
     .whole = of_all_directions<&Transfers::bytes>,
     .part_is = "direction",
     .part_title = "bytes {}",
     .parts = of_directions<&Transfers::bytes>,
     .without_is_zero = true},
    {.name = "gpu-time",
     .title = "GPU time of kernels",
     .absent = "times of GPUs",
     .unit = Unit::time,
     .needs = Need::gpu_times,
     .whole = gpu_time,
     .in_all = true},
    {.name = "kernel-gpu-time",
     .title = "GPU time of a kernel, mean",
     .absent = "kernel that was measured on a GPU",
     .unit = Unit::time,
     .needs = Need::gpu_times,
     .whole = kernel_gpu_time,
     .part_is = "kernel",
     .parts = gpu_time_of_kernels,
     .in_all = true},
    {.name = "graph-gpu-time",
     .title = "GPU time of graphs",
     .absent = "times of GPUs",
     .unit = Unit::time,
     .needs = Need::gpu_times | Need::launches,
     .whole = graph_gpu_time,
     .in_all = true},
    {.name = "transfer-gpu-time",
     .title = "GPU time of transfers",
     .absent = "times of GPUs",
     .unit = Unit::time,
     .needs = Need::gpu_times,
     .whole = transfer_gpu_time,
     .part_is = "direction",
     .part_title = "GPU time {}",
     .parts = gpu_time_of_directions,
     .without_is_zero = true,
     .in_all = true},
    {.name = "memory-peak",
     .title = "GPU memory peak",
     .unit = Unit::bytes,
     .needs = Need::memory | Need::results,
     .whole = memory_peak,
     .part_is = "kind",
     .part_title = "memory peak, {}",
     .parts = of_kinds,
     .without_is_zero = true},
    {.name = "memory-not-followed",
     .title = "allocations too many to follow",
     .needs = Need::memory | Need::results,
     .counts = Counts::most,
     .whole = not_followed},
    {.name = "operations",
     .title = "driver operations",
     .needs = Need::driver,
     .whole = operations},
    {.name = "bad-exits",
     .title = "processes that ended badly",
     .needs = Need::processes,
     .counts = Counts::most,
     .whole = bad_exits},
    {.name = "measured-idle",
     .title = "GPU idle",
     .absent = "times of GPUs",
     .unit = Unit::share,
     .needs = Need::gpu_times,
     .whole = measured_idle,
     .in_all = true},
    {.name = "idle",
     .title = "GPU idle, at least",
     .absent = "process that gave the GPU work",
     .unit = Unit::share,
     .needs = Need::launches | Need::copies | Need::waits | Need::times | Need::processes |
              Need::pending,
     .estimates = "measured-idle",
     .whole = idle},

    {.name = "iterations",
     .title = "found",
     .absent = "iterations",
     .place = Place::iterations,
     .needs = ITERATIONS,
     .whole = if_found<&Iterations::count>},
    {.name = "launches-per-iteration",
     .title = "launches of each",
     .absent = "iterations",
     .place = Place::iterations,
     .needs = ITERATIONS,
     .whole = if_found<&Iterations::launches>},
    {.name = "kernels-per-iteration",
     .title = "kernels of each",
     .absent = "iterations",
     .place = Place::iterations,
     .needs = ITERATIONS | Need::results | Need::graphs,
     .unlike = "launches-per-iteration",
     .whole = if_found<&Iterations::kernels>},
    {.name = "iteration-mean",
     .title = "mean",
     .absent = "timed iterations",
     .unit = Unit::time,
     .place = Place::iterations,
     .needs = ITERATION_TIMES,
     .whole = iteration_mean},
    {.name = "iteration-time",
     .title = "p50",
     .absent = "timed iterations",
     .unit = Unit::time,
     .place = Place::iterations,
     .needs = ITERATION_TIMES,
     .whole = iteration_quantile<50>,
     .median = iteration_median},
    {.name = "iteration-p99",
     .title = "p99",
     .absent = "timed iterations",
     .unit = Unit::time,
     .place = Place::iterations,
     .needs = ITERATION_TIMES,
     .whole = iteration_quantile<99>},
    {.name = "iteration-in-calls",
     .title = "in CUDA calls",
     .absent = "timed iterations",
     .unit = Unit::share,
     .place = Place::iterations,
     .needs = ITERATION_TIMES | Need::calls,
     .whole = share_of_iterations<&Spent::in_calls>},
    {.name = "iteration-waiting",
     .title = "waiting for the GPU",
     .absent = "timed iterations",
     .unit = Unit::share,
     .place = Place::iterations,
     .needs = ITERATION_TIMES,
     .whole = share_of_iterations<&Spent::waiting>},
    {.name = "iteration-gpu-time",
     .title = "GPU time of each, p50",
     .absent = "iterations that were measured on a GPU",
     .unit = Unit::time,
     .place = Place::iterations,
     .needs = ITERATIONS | Need::gpu_times,
     .whole = iteration_gpu_time,
     .in_all = true,
     .median = iteration_gpu_median},

    {.name = "phase-time",
     .title = "time of a phase",
     .unit = Unit::time,
     .place = Place::phases,
     .needs = ITERATION_TIMES | Need::copies | Need::memory,
     .part_is = "phase",
     .part_title = "{}",
     .parts = of_phases},
};

}  // namespace

std::string_view to_string(Unit unit) {
  constexpr std::string_view NAMES[] = {"count", "us", "bytes", "percent"};
  return NAMES[static_cast<std::size_t>(unit)];
}

std::span<const Measure> all_measures() { return MEASURES; }

const Measure* find_measure(std::string_view name) {
  const auto* at = std::find_if(std::begin(MEASURES), std::end(MEASURES),
                                [&](const Measure& one) { return one.name == name; });
  return at == std::end(MEASURES) ? nullptr : at;
}

std::vector<std::string> measure_names() {
  std::vector<std::string> names;
  for (const Measure& measure : MEASURES) names.emplace_back(measure.name);
  return names;
}

std::string MeasurePart::name() const {
  return std::string(measure->name) + (part.empty() ? "" : ":" + part);
}

}  // namespace cudabpf::analyze
