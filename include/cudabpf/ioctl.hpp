// Decodes what an ioctl requests of the NVIDIA driver from its bytes, by the tables of
// include/cudabpf/driver/. Pure functions; the bytes may be anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "cudabpf/driver.hpp"

namespace cudabpf {

// An ioctl as recorded at entry.
struct IoctlWords {
  DriverNode node = DriverNode::other;
  std::uint32_t command = 0;
  std::optional<std::uint32_t> inner;     // through NV_ESC_IOCTL_XFER_CMD: the real escape's number
  std::uint32_t inner_size = 0;           // and the size of its struct
  std::span<const std::byte> structure;   // as much of its struct as was recorded
  std::span<const std::byte> parameters;  // what the struct points to (RM_CONTROL, RM_ALLOC)
};

IoctlDetails describe_ioctl(const IoctlWords& ioctl, const DriverVersion& version);

// Adds what the driver wrote into the struct (a new object's handle, an address) and returns the
// driver's own status, which is separate from the system call's; nothing if the struct has none or
// it was not recorded. `structure` is the struct as read at return.
std::optional<std::uint32_t> describe_ioctl_return(const IoctlWords& ioctl,
                                                   std::span<const std::byte> structure,
                                                   const DriverVersion& version,
                                                   IoctlDetails& details);

}  // namespace cudabpf
