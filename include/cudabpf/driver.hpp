// The NVIDIA driver's versions, devices, ioctls and statuses, as every stage sees them.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cudabpf {

// "580.159.04". Layouts and names differ between versions. For an unknown version (all zero) only
// the layouts that all known versions share are decoded, with the newest names.
struct DriverVersion {
  std::uint16_t major = 0, minor = 0, patch = 0;
  auto operator<=>(const DriverVersion&) const = default;
  bool known() const { return major != 0; }
  static DriverVersion parse(std::string_view text);
};

// Which of the driver's devices.
enum class DriverNode : std::uint8_t { ctl, gpu, uvm, uvm_tools, modeset, caps, other };

// A device of the driver, found by its number.
struct DriverDevice {
  DriverNode node = DriverNode::other;
  std::string name;  // "nvidia0"
};

// What an ioctl is about, for figures and for readers without knowledge of the driver.
enum class DriverGroup : std::uint8_t {
  scheduling,  // channels put on the GPU's schedule, timeslices, preemption, runlists
  channel,     // clients, devices, address spaces, channels, engines: what a context is made of
  memory,      // allocated, mapped, freed
  event,       // registered and waited for
  peer,        // between GPUs: NVLink, fabric, dma-buf, IPC
  query,
  power,  // also clocks, performance states, temperatures
  other,
};
constexpr std::size_t DRIVER_GROUPS = 8;
std::string_view to_string(DriverGroup group);

// An ioctl's name and what it requests.
struct IoctlDetails {
  std::uint32_t number = 0;  // the escape's, or UVM's command
  std::string_view name;     // "NV_ESC_RM_CONTROL", "UVM_FREE"; empty: the tables do not know it
  std::optional<std::uint32_t> control;  // for NV_ESC_RM_CONTROL
  std::string_view control_name;         // "NV2080_CTRL_CMD_GPU_GET_INFO_V2"; may be empty
  std::optional<std::uint32_t> klass;    // for an allocation
  std::string_view class_name;           // "HOPPER_CHANNEL_GPFIFO_A"; may be empty
  DriverGroup group = DriverGroup::other;
  std::optional<std::uint32_t> client, parent, object;  // handles; at return, the new object's
  std::optional<std::uint64_t> size;                    // of memory
  std::optional<std::uint64_t> base;                    // an address, if the ioctl names one
  std::optional<std::uint64_t> value;  // a parameter worth a field of its own: a timeslice, …
  std::string_view value_name;         // "timeslice_us"
  bool privileged_firmware = false;    // the GPU's own firmware (GSP) carries the control out
};

// "NV_OK", "NV_ERR_INVALID_ARGUMENT"; empty if unknown.
std::string_view driver_status_name(std::uint32_t status);

// What an Xid number means, in a few words; empty if unknown.
std::string_view xid_meaning(std::uint32_t xid);

}  // namespace cudabpf
