// What an operation on one of the NVIDIA driver's devices is, for all stages after decoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cudabpf {

// Which of its devices.
enum class DriverNode : std::uint8_t { ctl, gpu, uvm, uvm_tools, modeset, caps, other };

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

}  // namespace cudabpf
