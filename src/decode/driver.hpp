// What an operation on one of the NVIDIA driver's devices asks for, from its bytes. Pure: the
// tables are those of include/cudabpf/driver/, the bytes may be anything.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "cudabpf/abi.h"
#include "cudabpf/driver.hpp"

namespace cudabpf {

// "580.159.04". Layouts and names differ between versions; of an unknown one (all zero) what all
// known versions agree on is decoded, and the newest names are taken.
struct DriverVersion {
  std::uint16_t major = 0, minor = 0, patch = 0;
  auto operator<=>(const DriverVersion&) const = default;
  bool known() const { return major != 0; }
  static DriverVersion parse(std::string_view text);
};

// An ioctl as recorded at entry.
struct IoctlWords {
  DriverNode node = DriverNode::other;
  std::uint32_t command = 0;
  std::optional<std::uint32_t> inner;    // through NV_ESC_IOCTL_XFER_CMD: the real escape's number,
  std::uint32_t inner_size = 0;          // and the size of its struct
  std::span<const std::byte> structure;  // as much of its struct as was recorded
  std::span<const std::byte> parameters;  // of what the struct points to (RM_CONTROL, RM_ALLOC)
};

IoctlDetails describe_ioctl(const IoctlWords& ioctl, const DriverVersion& version);

// Adds what the driver wrote into the struct (a new object's handle, an address), and returns its
// own status, which is apart from the system call's; nothing where the struct has none or it was
// not recorded. `structure` is the struct as read at return.
std::optional<std::uint32_t> describe_ioctl_return(const IoctlWords& ioctl,
                                                   std::span<const std::byte> structure,
                                                   const DriverVersion& version,
                                                   IoctlDetails& details);

// "NV_OK", "NV_ERR_INVALID_ARGUMENT"; empty: not known.
std::string_view driver_status_name(std::uint32_t status);

// What an Xid number means, in a few words; empty: not known.
std::string_view xid_meaning(std::uint32_t xid);

// What the kernel side must know, for each escape number and each UVM command.
abi::cb_ioctl_plan escape_plan(std::uint8_t number, const DriverVersion& version);
abi::cb_ioctl_plan uvm_plan(std::uint8_t command, const DriverVersion& version);

}  // namespace cudabpf
