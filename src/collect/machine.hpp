// Describes this machine: kernel, NVIDIA driver, GPUs.
#pragma once

#include "cudabpf/sink.hpp"

namespace cudabpf {

void describe_machine(Session& session);

// The loaded NVIDIA kernel driver's version ("580.159.04"); empty if there is none. `flavour` is
// "open" or "proprietary".
struct Driver {
  std::string version;
  std::string flavour;
};
Driver nvidia_driver();
std::vector<Gpu> nvidia_gpus();

}  // namespace cudabpf
