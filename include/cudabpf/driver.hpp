// What the NVIDIA driver's versions, devices, ioctls and statuses are, for every stage.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cudabpf {

// "580.159.04". Layouts and names differ between versions; of an unknown one (all zero) what all
// known versions agree on is decoded, and the newest names are taken.
struct DriverVersion {
  std::uint16_t major = 0, minor = 0, patch = 0;
  auto operator<=>(const DriverVersion&) const = default;
  bool known() const { return major != 0; }
  static DriverVersion parse(std::string_view text);
};

// Which of its devices.
enum class DriverNode : std::uint8_t { ctl, gpu, uvm, uvm_tools, modeset, caps, other };

// One of them, by its number.
struct DriverDevice {
  DriverNode node = DriverNode::other;
  std::string name;  // "nvidia0"
};

// What an ioctl is about, for figures and for readers who do not know the driver.
enum class DriverGroup : std::uint8_t {
  scheduling,  // channels put on the GPU's schedule, timeslices, preemption, runlists
  channel,     // clients, devices, address spaces, channels, engines: what a context is made of
  memory,      // allocated, mapped, freed
  event,       // registered and waited for
  peer,        // between GPUs: NVLink, fabric, dma-buf, IPC
  query,
  power,  // and clocks, performance states, temperatures
  other,
};
constexpr std::size_t DRIVER_GROUPS = 8;
std::string_view to_string(DriverGroup group);

// An ioctl's name and what it asks for.
struct IoctlDetails {
  std::uint32_t number = 0;  // of the escape, or UVM's command
  std::string_view name;     // "NV_ESC_RM_CONTROL", "UVM_FREE"; empty: the tables do not know it
  std::optional<std::uint32_t> control;  // of NV_ESC_RM_CONTROL
  std::string_view control_name;         // "NV2080_CTRL_CMD_GPU_GET_INFO_V2"; may be empty
  std::optional<std::uint32_t> klass;    // of an allocation
  std::string_view class_name;           // "HOPPER_CHANNEL_GPFIFO_A"; may be empty
  DriverGroup group = DriverGroup::other;
  std::optional<std::uint32_t> client, parent, object;  // handles; at return the new object's
  std::optional<std::uint64_t> size;                    // of memory
  std::optional<std::uint64_t> base;                    // an address, where the ioctl names one
  std::optional<std::uint64_t> value;  // of the few parameters worth a field: a timeslice in µs, …
  std::string_view value_name;         // "timeslice_us"
  bool privileged_firmware = false;    // the control is carried out by the GPU's own firmware (GSP)
};

// "NV_OK", "NV_ERR_INVALID_ARGUMENT"; empty: not known.
std::string_view driver_status_name(std::uint32_t status);

// What an Xid number means, in a few words; empty: not known.
std::string_view xid_meaning(std::uint32_t xid);

}  // namespace cudabpf
