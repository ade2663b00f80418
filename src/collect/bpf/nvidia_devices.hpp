// The numbers that the NVIDIA driver's devices have on this machine now.
#pragma once

#include "collect/driver_devices.hpp"

namespace cudabpf {

DriverDevices nvidia_devices();

}  // namespace cudabpf
