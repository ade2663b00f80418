// What a trace says of a machine's GPUs: how they are, as NVML reports, and what they did, as CUPTI
// does (docs/trace-format.md).
#pragma once

#include <cstddef>
#include <string>

#include "cudabpf/sink.hpp"

namespace cudabpf {

std::string sample_line(const GpuSample& sample);  // newline included

// Writes the line at `at` and returns its end. It takes at most as many bytes as work_bound() says.
char* put_work(char* at, const GpuOperation& work);
std::size_t work_bound(const GpuOperation& work);
std::string times_line(const GpuTimes& times);  // newline included

}  // namespace cudabpf
