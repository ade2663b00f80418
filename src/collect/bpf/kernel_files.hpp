// Files of tracefs and debugfs, also where nobody has mounted them.
#pragma once

#include <string>

#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

// "events/syscalls/sys_enter_ioctl/id"; the whole of it, up to 4096 bytes.
Result<std::string> read_tracefs(const std::string& path);
// "sched/preempt"
Result<std::string> read_debugfs(const std::string& path);

}  // namespace cudabpf
