// The current numbers of the NVIDIA driver's devices on this machine.
#pragma once

#include "collect/driver_devices.hpp"

namespace cudabpf {

DriverDevices nvidia_devices();

}  // namespace cudabpf
