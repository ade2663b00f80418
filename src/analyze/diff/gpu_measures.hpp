// The measures of a trace that has GPU times, to which the table in measure.cpp refers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/diff/measures.hpp"
#include "analyze/diff/noise.hpp"

namespace cudabpf::analyze {

// Nothing: the trace has not measured it.
std::optional<std::uint64_t> gpu_time(const Measures& of);         // of all kernels
std::optional<std::uint64_t> kernel_gpu_time(const Measures& of);  // mean
std::optional<std::uint64_t> graph_gpu_time(const Measures& of);
std::optional<std::uint64_t> transfer_gpu_time(const Measures& of);
std::optional<std::uint64_t> iteration_gpu_time(const Measures& of);  // the median

// By the kernel's function, without template arguments: a condition has < and > of its own.
std::vector<PartFigure> gpu_time_of_kernels(const Measures& of);  // means
std::vector<PartFigure> gpu_time_of_directions(const Measures& of);

Median iteration_gpu_median(const Measures& of);

}  // namespace cudabpf::analyze
