// The direction of a copy between two GPUs.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace cudabpf {

inline std::string between_gpus(std::int64_t source, std::int64_t destination) {
  return fmt::format("GPU {} to GPU {}", source, destination);
}

}  // namespace cudabpf
