#include "analyze/diff/gpu_measures.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "analyze/telling_names.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

std::optional<std::uint64_t> gpu_time(const Measures& of) {
  if (!of.gpus_measured()) return std::nullopt;
  return of.kernels().gpu().kernels().times.total();
}

std::optional<std::uint64_t> kernel_gpu_time(const Measures& of) {
  const Durations& times = of.kernels().gpu().kernels().times;
  if (!times.count()) return std::nullopt;
  return times.mean();
}

std::vector<PartFigure> gpu_time_of_kernels(const Measures& of) {
  std::map<std::string, Durations> by_function;
  for (const Kernels::Figures& kernel : of.kernels().figures(Kernels::By::name))
    if (kernel.gpu.times.count() && !kernel.full.empty())
      by_function[telling_names({kernel.full}).front()].add(kernel.gpu.times);
  std::vector<PartFigure> parts;
  parts.reserve(by_function.size());
  for (const auto& [function, times] : by_function) parts.push_back({function, times.mean()});
  return parts;
}

std::optional<std::uint64_t> graph_gpu_time(const Measures& of) {
  if (!of.gpus_measured()) return std::nullopt;
  return of.kernels().gpu().graph_launches().times.total();
}

std::optional<std::uint64_t> transfer_gpu_time(const Measures& of) {
  if (!of.gpus_measured()) return std::nullopt;
  std::uint64_t sum = 0;
  for (const MeasuredOperations::OfDirection& one : of.kernels().gpu().copies())
    if (!one.fills) sum = saturating_sum(sum, one.figures.times.total());
  return sum;
}

std::vector<PartFigure> gpu_time_of_directions(const Measures& of) {
  std::vector<PartFigure> parts;
  for (const MeasuredOperations::OfDirection& one : of.kernels().gpu().copies())
    if (!one.fills) parts.push_back({one.name, one.figures.times.total()});
  std::sort(parts.begin(), parts.end(),
            [](const auto& one, const auto& other) { return one.name < other.name; });
  return parts;
}

std::optional<std::uint64_t> iteration_gpu_time(const Measures& of) {
  if (of.gpu_of_iterations().empty()) return std::nullopt;
  return quantile_of(of.gpu_of_iterations(), 0.5);
}

Median iteration_gpu_median(const Measures& of) { return median_of(of.gpu_of_iterations()); }

}  // namespace cudabpf::analyze
