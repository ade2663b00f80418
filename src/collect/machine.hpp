// What machine this is: kernel, NVIDIA driver, GPUs.
#pragma once

#include "cudabpf/sink.hpp"
#include "decode/driver_devices.hpp"

namespace cudabpf {

void describe_machine(Session& session);

// The loaded NVIDIA kernel driver's version ("580.159.04"); empty if there is none. `flavour` is
// "open" or "proprietary".
struct Driver {
  std::string version;
  std::string flavour;
};
Driver nvidia_driver();
// Its devices' numbers now.
DriverDevices nvidia_devices();
std::vector<Gpu> nvidia_gpus();

}  // namespace cudabpf
