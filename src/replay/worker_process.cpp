#include "replay/worker_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace cudabpf::replay {

namespace {

constexpr int FREE_FD = 10;  // above those that the process finds its parent by

// Only what is safe between fork and exec.
[[noreturn]] void become_worker(int socket, int progress) {
  char* const arguments[] = {const_cast<char*>("cudabpf"),  // NOLINT: exec changes none of them
                             const_cast<char*>(WORKER),     // NOLINT
                             nullptr};
  ::dup2(socket, SOCKET_FD);
  ::dup2(progress, PROGRESS_FD);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // kernels may print, and the answer is not theirs
  ::execv("/proc/self/exe", arguments);
  ::_exit(exit_code::CANNOT_EXECUTE);
}

}  // namespace

Result<WorkerProcess> WorkerProcess::start(std::chrono::milliseconds patience) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_error("make a socket");
  Fd ours(ends[0]), theirs(ends[1]);
  Progress progress = TRY(Progress::make());
  Fd socket(::fcntl(theirs.get(), F_DUPFD_CLOEXEC, FREE_FD));
  Fd shared(::fcntl(progress.fd(), F_DUPFD_CLOEXEC, FREE_FD));
  if (!socket || !shared) return errno_error("duplicate a descriptor");
  pid_t pid = ::fork();
  if (pid < 0) return errno_error("start a process");
  if (pid == 0) become_worker(socket.get(), shared.get());
  return WorkerProcess(pid, Lines(std::move(ours)), std::move(progress), patience);
}

WorkerProcess::WorkerProcess(pid_t pid, Lines lines, Progress progress,
                             std::chrono::milliseconds patience)
    : pid_(pid), lines_(std::move(lines)), progress_(std::move(progress)), patience_(patience) {}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      lines_(std::move(other.lines_)),
      progress_(std::move(other.progress_)),
      patience_(other.patience_),
      is_asked_(other.is_asked_) {}

// One that waits for a request ends by itself, as any program does: what traces it then loses
// nothing.
WorkerProcess::~WorkerProcess() {
  constexpr int PATIENCE_MS = 5000, OFTEN_MS = 5;
  if (pid_ >= 0 && !is_asked_) {
    ::shutdown(lines_.fd(), SHUT_RDWR);
    siginfo_t info{};
    for (int ms = 0; ms < PATIENCE_MS && !info.si_pid; ms += OFTEN_MS) {
      ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | WNOHANG);
      if (!info.si_pid) std::this_thread::sleep_for(std::chrono::milliseconds(OFTEN_MS));
    }
  }
  reap();
}

// How it ended, in words; it is killed unless it has done so by itself.
std::string WorkerProcess::reap() {
  if (pid_ < 0) return "its process has ended";
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
  if (WIFSIGNALED(status))
    return fmt::format("its process was ended by a signal: {}", ::strsignal(WTERMSIG(status)));
  return fmt::format("its process exited with status {}", WEXITSTATUS(status));
}

Answer WorkerProcess::ended(std::string why) const {
  Answer answer;
  answer.error = std::move(why);
  answer.step = progress_.step();
  return answer;
}

Result<std::optional<std::string>> WorkerProcess::listen(std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  constexpr int OFTEN_MS = 50;
  std::uint64_t beats = progress_.beats();
  auto deadline = Clock::now() + patience;
  for (;;) {
    if (auto line = lines_.take()) return line;
    pollfd polled{lines_.fd(), POLLIN, 0};
    int ready = ::poll(&polled, 1, OFTEN_MS);
    if (ready < 0 && errno != EINTR) return errno_error("poll");
    if (ready > 0 && !TRY(lines_.receive())) {
      // One that has closed its socket is about to end, and then says how.
      siginfo_t info{};
      ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
      return std::optional<std::string>();
    }
    if (std::uint64_t now = progress_.beats(); now != beats) {
      beats = now;
      deadline = Clock::now() + patience;
    }
    if (Clock::now() > deadline)
      return Error{
          fmt::format("it did nothing for {} s", std::chrono::duration<double>(patience).count()),
          {}};
  }
}

Answer WorkerProcess::ask(const Request& request, std::chrono::milliseconds most) {
  progress_.at_no_step();
  is_asked_ = true;
  if (pid_ < 0 || !lines_.write(line_of(request))) return ended(reap());
  auto line = listen(std::min(patience_, most));
  auto answer = line && *line ? answer_in(**line) : Result<Answer>(Error{});
  if (answer) {
    is_asked_ = false;
    return std::move(*answer);
  }
  std::string how = reap();
  return ended(!line ? line.error().message : *line ? answer.error().message : how);
}

}  // namespace cudabpf::replay
