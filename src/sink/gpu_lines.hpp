// What a trace says of a machine's GPUs as NVML tells it (docs/trace-format.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cudabpf/sink.hpp"

namespace cudabpf {

std::string sample_line(const GpuSample& sample);  // newline included
// For the header: how GPUs are sampled.
nlohmann::ordered_json sampling_fields(const Sampling& sampling);

}  // namespace cudabpf
