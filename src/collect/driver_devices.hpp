// The NVIDIA driver's device numbers and the devices' names. The first major is fixed; the others
// are assigned when a module loads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cudabpf/abi.h"
#include "cudabpf/driver.hpp"

namespace cudabpf {

class DriverDevices {
 public:
  // From the text of /proc/devices. `others` names devices that stand in for the driver's
  // ("1:3=nvidiactl,1:5=nvidia-uvm"): for tests, and for nodes with other numbers.
  static DriverDevices parse(std::string_view proc_devices, std::string_view others);

  DriverNode node(std::uint32_t device) const;
  std::string name(std::uint32_t device) const;  // "nvidia0"; empty if it is not one of them

  // As the kernel side wants them, the last one empty.
  std::vector<abi::cb_driver_device> for_kernel_side() const;
  bool operator==(const DriverDevices&) const = default;

 private:
  struct Entry {
    std::uint32_t device = 0, mask = 0;
    DriverNode node = DriverNode::other;
    std::string name;  // empty: it follows from the minor
    bool operator==(const Entry&) const = default;
  };
  const Entry* find(std::uint32_t device) const;

  std::vector<Entry> entries_;
};

}  // namespace cudabpf
