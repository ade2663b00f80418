// What the kernel side must know to record each ioctl of this driver version.
#pragma once

#include <cstdint>

#include "cudabpf/abi.h"
#include "cudabpf/driver.hpp"

namespace cudabpf {

// For each escape number and each UVM command.
abi::cb_ioctl_plan escape_plan(std::uint8_t number, const DriverVersion& version);
abi::cb_ioctl_plan uvm_plan(std::uint8_t command, const DriverVersion& version);

}  // namespace cudabpf
