// Records of processes that cudabpf makes itself: without a program in the kernel, nothing else
// makes them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "cudabpf/abi.h"

namespace cudabpf {

// What /proc says of a process; `kind`: CB_FORK or CB_EXEC.
abi::cb_process process_record(abi::cb_kind kind, pid_t pid, std::uint64_t ts);

// How a process ended, as wait(2) gives it. Nothing: it is not known yet, or cannot be known.
std::optional<int> exit_status(pid_t pid, int pidfd);

}  // namespace cudabpf
