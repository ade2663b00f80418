// Parts of the kernel's interfaces that <linux/bpf.h> or <linux/perf_event.h> may be too old to
// have: the headers come with the distribution and say nothing about the running kernel. These
// numbers are the kernel's ABI and do not change.
#pragma once

#include <linux/bpf.h>

#include <cstdint>

namespace cudabpf {

// Kernel commit 89ae89f53d20, Linux 6.6.
inline constexpr auto ATTACH_UPROBE_MULTI = static_cast<bpf_attach_type>(48);
inline constexpr std::uint32_t UPROBE_MULTI_AT_RETURN = 1;
// Kernel commit d920179b3d48, Linux 6.13.
inline constexpr auto ATTACH_UPROBE_SESSION = static_cast<bpf_attach_type>(57);

// read() of a perf event returns how many records found no room. Kernel commit 119a784c8127,
// Linux 6.0.
inline constexpr std::uint64_t PERF_READ_LOST = 1 << 4;

// The part of bpf_attr that creates a uprobe_multi link.
struct UprobeMultiAttributes {
  std::uint32_t program, target, type, flags;
  std::uint64_t path, offsets, semaphores, cookies;  // addresses
  std::uint32_t count, multi_flags, pid, reserved;
};
static_assert(sizeof(UprobeMultiAttributes) == 64);

}  // namespace cudabpf
