#include "analyze/energy/energy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "util/limited.hpp"

namespace cudabpf::analyze {

namespace {

std::map<std::uint32_t, std::string> gpu_names_in(const std::optional<Sampling>& sampling) {
  std::map<std::uint32_t, std::string> names;
  if (sampling)
    for (const SampledGpu& gpu : sampling->gpus) names[gpu.device] = gpu.name;
  return names;
}

}  // namespace

void Energy::line(const Line& line) {
  take_sample(line, true);
  if (line.kind == LineKind::gpu_operation) model_.worked(line, part_.to);
  if (own_execution_) own_execution_->line(line);
}

void Energy::outside(const Line& line) {
  take_sample(line, false);
  if (own_execution_) own_execution_->outside(line);
}

// How much an idle GPU needs may be measured anywhere in the trace.
void Energy::take_sample(const Line& line, bool in_part) {
  if (!line.sample) return;
  const GpuSample& sample = *line.sample;
  if (!has_room_for(sampled_, sample.device, MAX_GPUS)) return;
  Sampled& gpu = sampled_[sample.device];
  gpu.idle.add(sample);
  gpu.has_counter |= sample.energy_j.has_value();
  if (!in_part) return;
  if (sample.energy_j) gpu.readings.add(sample.ts, *sample.energy_j);
  if (sample.power_w) model_.sampled(sample.ts, *sample.power_w);
  gpu.sole.add(sample);
}

void Energy::finish(const TraceFacts& facts) {
  if (own_execution_) own_execution_->finish(facts);
  const std::optional<Sampling>& sampling = facts.header.sampling;
  gpu_names_ = gpu_names_in(sampling);
  std::uint64_t end = std::min(part_.to, facts.duration());
  for (const auto& [device, sampled] : sampled_)
    if (sampled.has_counter) gpus_.push_back(figures_of(device, sampled, end));
  if (!gpus_.empty()) return;
  why_not_ = sampled_.empty() ? "this trace has no GPU samples"
                              : "no sample has a reading of an energy counter";
  std::string why = sampling ? sampling->why_not : "its header does not say why";
  if (!why.empty()) why_not_ += fmt::format(" ({})", why);
}

Energy::OfGpu Energy::figures_of(std::uint32_t device, const Sampled& sampled,
                                 std::uint64_t end) const {
  const EnergyReadings& readings = sampled.readings;
  OfGpu gpu;
  gpu.device = device;
  if (auto name = gpu_names_.find(device); name != gpu_names_.end()) gpu.name = name->second;
  auto stretch = [&](std::string name, std::uint64_t from, std::uint64_t to) {
    return Stretch{std::move(name), from, to, readings.between(from, to)};
  };
  gpu.whole = stretch("all", part_.clipped(0), end);
  if (execution_.thread()) {
    for (const Phase& phase : execution_.phases().phases)
      if (phase.seen && phase.end > phase.begin)
        gpu.phases.push_back(stretch(phase.name, phase.begin, phase.end));
    gpu.iterations = of_iterations(readings);
  }
  gpu.idle = sampled.idle.least();
  gpu.pid = sampled.sole.pid();
  gpu.no_pid = sampled.sole.why_not();
  if (gpu.pid)
    gpu.process =
        stretch(fmt::format("process {}", *gpu.pid), sampled.sole.first(), sampled.sole.last());
  if (model_.any()) share_among_classes(gpu, sampled);
  return gpu;
}

void Energy::share_among_classes(OfGpu& gpu, const Sampled& sampled) const {
  if (sampled_.size() > 1 || !model_.is_one_gpu())
    gpu.no_classes = "there are several GPUs, and which of them a process means is not known";
  else if (sampled.sole.named() > model_.processes())
    gpu.no_classes = "other processes, whose work was not measured, had the GPU too";
  else if (!gpu.idle)
    gpu.no_classes = "what the GPU uses when it is idle is not known";
  else if (static_cast<double>(model_.time()) < EnergyReadings::SHORTEST_SECONDS * 1e9)
    gpu.no_classes = "all that ran took less than a second on the GPU";
  if (!gpu.no_classes.empty()) return;
  auto classes = model_.share(gpu.idle->watts);
  if (!classes)
    gpu.no_classes = "its power was not sampled twice";
  else if (!classes->any_shared())
    gpu.no_classes = "the GPU never worked for a twentieth of the time between two samples";
  else
    gpu.classes = classes;
}

// Iterations after warm-up. The counter is not read just where they begin: the first and the last
// count by the share that lies in the window.
std::optional<Energy::OfIterations> Energy::of_iterations(const EnergyReadings& readings) const {
  const Iterations& iterations = execution_.iterations();
  std::uint64_t begin = part_.clipped(iterations.warm), end = part_.clipped(iterations.end);
  if (iterations.found == Iterations::Found::none || begin >= end) return std::nullopt;
  OfIterations found;
  found.name = "iterations";
  found.begin = begin;
  found.end = end;
  found.used = readings.between(begin, end);
  if (!found.used.known()) return found;
  for (const Iteration& one : iterations.each) {
    std::uint64_t from = std::max(one.begin, found.used.from),
                  to = std::min(one.end, found.used.to);
    if (from < to)
      found.count += static_cast<double>(to - from) / static_cast<double>(one.end - one.begin);
  }
  if (found.count < 1)
    found.used.why_not = "no whole iteration lies between the counter's readings";
  return found;
}

}  // namespace cudabpf::analyze
