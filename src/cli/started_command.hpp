// The command that `run` starts, as the user who called sudo. It is held back until its probes are
// in place.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/request/invoker.hpp"
#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::cli {

class StartedCommand {
 public:
  struct Options {
    std::vector<std::string> arguments;
    std::vector<std::string> environment;
    std::optional<User> user;  // nothing: the user that cudabpf was started as
    // What of its standard input, output and errors is cudabpf's terminal becomes /dev/null.
    bool terminal_is_taken = false;
    // Standard output is the trace's: what the command writes there goes to standard error.
    bool output_is_taken = false;
  };

  // Forks. The child waits.
  static Result<StartedCommand> prepare(const Options& options);
  StartedCommand(StartedCommand&&) = default;
  StartedCommand& operator=(StartedCommand&&) = delete;
  ~StartedCommand();  // a child that was never released ends

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable when it has ended

  // Lets the child become the command. The error says why it could not (not found, not executable).
  Result<> release();

  // The command's status as a shell would give it, once it has ended; nothing while it runs.
  std::optional<int> status();

 private:
  StartedCommand() = default;

  std::string program_;
  pid_t pid_ = -1;
  Fd pidfd_;
  Fd go_;       // closing or writing it releases the child
  Fd failure_;  // the child's errno, if exec failed
  bool released_ = false;
  std::optional<int> status_;
};

}  // namespace cudabpf::cli
