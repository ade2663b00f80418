// For tests, cudabpf is linked with this instead of src/collect/bpf/nvidia_devices.cpp:
// CUDABPF_DEVICES names devices that take the place of the driver's (DriverDevices::parse).
#include "collect/bpf/nvidia_devices.hpp"

#include <cstdlib>

namespace cudabpf {

DriverDevices nvidia_devices() {
  const char* devices = std::getenv("CUDABPF_DEVICES");
  return DriverDevices::parse({}, devices ? devices : "");
}

}  // namespace cudabpf
