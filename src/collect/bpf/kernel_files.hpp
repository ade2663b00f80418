// Reads files of tracefs and debugfs, even if these are not mounted.
#pragma once

#include <string>

#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

// "events/syscalls/sys_enter_ioctl/id"; the whole file, up to 4096 bytes.
Result<std::string> read_tracefs(const std::string& path);
// "sched/preempt"
Result<std::string> read_debugfs(const std::string& path);

}  // namespace cudabpf
