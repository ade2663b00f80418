// What cudabpf uses of the kernel's BPF interface and <linux/bpf.h> may be too old to know: the
// header comes with the distribution and says nothing of the kernel that runs. These numbers are
// the kernel's ABI and do not change.
#pragma once

#include <linux/bpf.h>

namespace cudabpf {

// Kernel commit 89ae89f53d20, Linux 6.6.
inline constexpr auto ATTACH_UPROBE_MULTI = static_cast<bpf_attach_type>(48);

}  // namespace cudabpf
