#include "cli/started_command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/request/program_path.hpp"
#include "util/console/full_screen.hpp"
#include "util/exit_codes.hpp"
#include "util/system/exec_strings.hpp"
#include "util/system/pidfd.hpp"
#include "util/system/pipe.hpp"

namespace cudabpf::cli {

namespace {

// Those of standard input, output and errors that are on the terminal that is taken.
std::vector<int> descriptors_on_terminal(bool is_taken) {
  std::vector<int> descriptors;
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (is_taken && are_same_terminal(fd, STDOUT_FILENO)) descriptors.push_back(fd);
  return descriptors;
}

}  // namespace

Result<StartedCommand> StartedCommand::prepare(const Options& options) {
  std::string program = find_program(options.arguments.at(0), options.environment);
  if (program.empty())
    return Error{fmt::format("{}: command not found", options.arguments[0]),
                 "give its path, or put its folder on PATH", exit_code::NOT_FOUND};
  Pipe go = TRY(make_pipe()), failure = TRY(make_pipe());
  Options given = options;
  auto arguments = exec_strings(given.arguments);
  auto environment = exec_strings(given.environment);
  auto to_silence = descriptors_on_terminal(options.terminal_is_taken);
  Fd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing) return errno_error("opening /dev/null");

  StartedCommand command;
  command.program_ = program;
  command.pid_ = fork();
  if (command.pid_ < 0) return errno_error("starting the command");
  if (command.pid_ == 0) {
    // Only what is safe between fork and exec. Signals are as the caller left them: cudabpf blocks
    // and ignores signals later, in the parent.
    go.to_write.reset();
    char byte;
    if (read(go.to_read.get(), &byte, 1) != 1) _exit(exit_code::FAILED);  // cudabpf gave up
    int error = 0;
    for (int fd : to_silence) dup2(nothing.get(), fd);
    if (options.output_is_taken && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
      dup2(nothing.get(), STDOUT_FILENO);
    // Ambient capabilities are for tracing only; exec drops file capabilities by itself.
    if (geteuid() != 0) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (options.user && !privileges::become(*options.user))
      error = errno;
    else
      execve(program.c_str(), arguments.data(), environment.data());
    if (!error) error = errno;
    [[maybe_unused]] ssize_t written = write(failure.to_write.get(), &error, sizeof(error));
    _exit(error == ENOENT ? exit_code::NOT_FOUND : exit_code::CANNOT_EXECUTE);
  }
  command.go_ = std::move(go.to_write);
  command.failure_ = std::move(failure.to_read);
  command.pidfd_ = open_pidfd(command.pid_);
  return command;
}

StartedCommand::~StartedCommand() {
  if (pid_ > 0 && go_ && !released_) {
    go_.reset();  // the child sees the pipe close, and exits
    waitpid(pid_, nullptr, 0);
  }
}

Result<> StartedCommand::release() {
  released_ = true;
  // The child may have been killed while it waited: its status will say so.
  if (write(go_.get(), "g", 1) != 1 && errno != EPIPE) return errno_error("releasing the command");
  int error = 0;
  ssize_t got;
  do got = read(failure_.get(), &error, sizeof(error));
  while (got < 0 && errno == EINTR);
  failure_.reset();
  if (got != sizeof(error)) return ok();  // the pipe closed on exec: it runs
  bool missing = error == ENOENT;
  bool file_is_there = access(program_.c_str(), F_OK) == 0;
  return Error{fmt::format("cannot execute {}: {}", program_, std::strerror(error)),
               !missing        ? "check its permissions, and those of its folders"
               : file_is_there ? "the interpreter that its first line names is missing"
                               : "give its path, or put its folder on PATH",
               missing ? exit_code::NOT_FOUND : exit_code::CANNOT_EXECUTE};
}

std::optional<int> StartedCommand::status() {
  if (status_) return status_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  status_ = WIFSIGNALED(status) ? exit_code::SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status);
  return status_;
}

}  // namespace cudabpf::cli
