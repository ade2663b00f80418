// What the NVIDIA driver tells of a GPU's errors ("Xid"). Pure: the text may be anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cudabpf/event.hpp"

namespace cudabpf {

// An error, its number and the GPU's PCI address known, by the message that comes with it, which
// may begin with the process.
GpuError describe_xid(std::uint32_t number, std::string_view device, std::string_view message);

// From a line of the kernel's log, if it tells of one: "NVRM: Xid (PCI:0000:0a:00): 79, pid=1, …".
std::optional<GpuError> parse_xid(std::string_view line);

}  // namespace cudabpf
