// Decodes the GPU errors ("Xid") that the NVIDIA driver reports. Pure functions; the text may be
// anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cudabpf/event.hpp"

namespace cudabpf {

// Describes an error from its number, the GPU's PCI address and its message, which may begin with
// the process.
GpuError describe_xid(std::uint32_t number, std::string_view device, std::string_view message);

// From a line of the kernel's log, if it reports one: "NVRM: Xid (PCI:0000:0a:00): 79, pid=1, …".
std::optional<GpuError> parse_xid(std::string_view line);

}  // namespace cudabpf
