// The parent's side of a process that replays: starts it, asks it, and notices how it ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "replay/messages.hpp"
#include "replay/progress.hpp"

namespace cudabpf::replay {

class WorkerProcess {
 public:
  // `patience`: how long it may do nothing that shows.
  static Result<WorkerProcess> start(std::chrono::milliseconds patience);
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess();  // ends it

  // If it ends, or has to be ended, that is an error of the answer. `most`: so long, if that is
  // less than its patience.
  Answer ask(const Request& request,
             std::chrono::milliseconds most = std::chrono::milliseconds::max());

 private:
  WorkerProcess(pid_t pid, Lines lines, Progress progress, std::chrono::milliseconds patience);
  // Nothing: it has ended, or does nothing any more.
  Result<std::optional<std::string>> listen(std::chrono::milliseconds patience);
  Answer ended(std::string why) const;
  std::string reap();

  pid_t pid_;
  Lines lines_;
  Progress progress_;
  std::chrono::milliseconds patience_;
  bool is_asked_ = false;  // and has not answered yet
};

}  // namespace cudabpf::replay
