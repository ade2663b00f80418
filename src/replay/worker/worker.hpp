// The process that replays: it alone touches the GPU, and may fault, hang or be killed. Its parent
// (worker_process.hpp) asks, and it answers.
#pragma once

#include "util/result.hpp"

namespace cudabpf::replay {

// Whether it was started by such a parent.
bool has_parent();
// Answers until the parent closes the socket. Returns the exit status.
Result<int> work_for_parent();

}  // namespace cudabpf::replay
