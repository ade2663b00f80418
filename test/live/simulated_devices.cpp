// What cudabpf is linked with for tests in place of src/collect/nvidia_devices.cpp: CUDABPF_DEVICES
// names devices that stand for the driver's (DriverDevices::parse).
#include <cstdlib>

#include "collect/machine.hpp"

namespace cudabpf {

DriverDevices nvidia_devices() {
  const char* devices = std::getenv("CUDABPF_DEVICES");
  return DriverDevices::parse({}, devices ? devices : "");
}

}  // namespace cudabpf
