// What a trace says of a machine's GPUs: their state, from NVML, and their operations, from CUPTI
// (docs/trace-format.md).
#pragma once

#include <cstddef>
#include <string>

#include "cudabpf/sink.hpp"

namespace cudabpf {

std::string sample_line(const GpuSample& sample);  // newline included

// Writes the line at `at` and returns its end. The line takes at most work_bound() bytes.
char* put_work(char* at, const GpuOperation& work);
std::size_t work_bound(const GpuOperation& work);
std::string times_line(const GpuTimes& times);  // newline included
std::string window_line(const GpuWindow& window);

}  // namespace cudabpf
