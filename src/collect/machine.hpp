// Describes this machine: kernel, NVIDIA driver, GPUs.
#pragma once

#include <string>
#include <vector>

#include "cudabpf/sink.hpp"

namespace cudabpf {

void describe_machine(Session& session);
std::string machine_name();  // of the host

// What the driver says of itself, where it is loaded.
constexpr const char* NVIDIA_FOLDER = "/proc/driver/nvidia";

// The loaded NVIDIA kernel driver's version ("580.159.04"); empty if there is none. `flavour` is
// "open" or "proprietary".
struct Driver {
  std::string version;
  std::string flavour;
};
Driver nvidia_driver(const std::string& folder = NVIDIA_FOLDER);
std::vector<Gpu> nvidia_gpus(const std::string& folder = NVIDIA_FOLDER);

}  // namespace cudabpf
