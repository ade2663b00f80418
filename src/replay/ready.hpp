// A process that replays, with a capture's memory where it was in the program.
#pragma once

#include <chrono>
#include <optional>

#include "replay/messages.hpp"
#include "replay/worker_process.hpp"

namespace cudabpf::replay {

// Starts processes until one gets all of the addresses; `worker` is that one. Returns its answer
// to `request`, which is Task::prepare.
Result<Answer> start_ready(std::optional<WorkerProcess>& worker, const Request& request,
                           std::chrono::milliseconds patience);

// What an answer says that went wrong.
Error error_of(const Answer& answer);

}  // namespace cudabpf::replay
