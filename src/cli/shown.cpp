#include "cli/shown.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>

#include "cli/request/invoker.hpp"
#include "cli/request/pager.hpp"
#include "util/exit_codes.hpp"
#include "util/system/exec_strings.hpp"
#include "util/system/pipe.hpp"
#include "util/system/privileges.hpp"
#include "util/text/ascii.hpp"

namespace cudabpf::cli {

namespace {

constexpr unsigned WIDEST_PAGE = 160;

// While a pager runs, Ctrl-C is for the pager, which may end before it has read everything.
class SignalsAside {
 public:
  SignalsAside() {
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    for (std::size_t i = 0; i < std::size(SIGNALS); i++)
      ::sigaction(SIGNALS[i], &ignored, &before_[i]);
  }
  ~SignalsAside() {
    for (std::size_t i = 0; i < std::size(SIGNALS); i++)
      ::sigaction(SIGNALS[i], &before_[i], nullptr);
  }
  SignalsAside(const SignalsAside&) = delete;
  SignalsAside& operator=(const SignalsAside&) = delete;

  static sigset_t set() {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : SIGNALS) sigaddset(&set, signal);
    return set;
  }

 private:
  static constexpr int SIGNALS[] = {SIGINT, SIGQUIT, SIGPIPE};
  struct sigaction before_[std::size(SIGNALS)]{};
};

// Nothing but standard output, standard error and what is given reaches the pager.
pid_t start(Pager pager, int standard_input) {
  auto command = exec_strings(pager.command), environment = exec_strings(pager.environment);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, standard_input, STDIN_FILENO);
  sigset_t defaults = SignalsAside::set();
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  if (::posix_spawn(&pid, command[0], &actions, &attributes, command.data(), environment.data()))
    pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return pid;
}

// Whether a pager showed the text. Its exit status does not matter, except a shell's that found no
// such program.
bool was_paged(const Pager& pager, std::string_view text) {
  auto pipe = make_pipe();
  if (!pipe) return false;
  SignalsAside aside;
  pid_t pid = start(pager, pipe->to_read.get());
  if (pid < 0) return false;
  pipe->to_read.reset();
  write_all(pipe->to_write, text);  // unless it is left before the end
  pipe->to_write.reset();
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return true;
  return !WIFEXITED(status) || (WEXITSTATUS(status) != exit_code::CANNOT_EXECUTE &&
                                WEXITSTATUS(status) != exit_code::NOT_FOUND);
}

// Output through a pipe, as into head, mostly ends up on the terminal.
std::optional<unsigned> width_beyond(int fd) {
  struct stat status {};
  Terminal terminal = terminal_of(STDERR_FILENO);
  if (!terminal.is_terminal || ::fstat(fd, &status) || !S_ISFIFO(status.st_mode)) return {};
  return terminal.width;
}

// The shell's prompt takes a row. A job in the background gets no keys.
bool is_too_long(std::string_view text, const Terminal& terminal) {
  const char* type = std::getenv("TERM");
  return terminal.is_terminal && type && *type && std::string_view(type) != "dumb" &&
         terminal.height && rows_of(text, terminal.width) >= terminal.height &&
         ::tcgetpgrp(STDOUT_FILENO) == ::getpgrp();
}

Result<> become_caller() {
  if (geteuid() != 0) return privileges::drop(std::nullopt, {});
  if (!caller().user) return ok();
  return privileges::drop(caller().user, {CAP_DAC_READ_SEARCH});
}

}  // namespace

Page page_for(std::FILE* to) {
  Terminal terminal = terminal_of(::fileno(to));
  if (!terminal.is_terminal && !std::getenv("COLUMNS"))
    terminal.width = width_beyond(::fileno(to)).value_or(WIDEST_PAGE);
  return Page(terminal, WIDEST_PAGE);
}

Result<> become_reader() {
  static const Result<> DONE = [] {
    std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error, as a full disk is
    return become_caller();
  }();
  return DONE;
}

void show(const std::string& page, std::FILE* to) {
  Terminal terminal = terminal_of(::fileno(to));
  std::string text = terminal.is_terminal && !terminal.utf8 ? in_ascii(page) : page;
  if (to == stdout && is_too_long(text, terminal_of(STDOUT_FILENO)) && become_reader())
    if (auto pager = pager_for(caller().environment, rights_of_this())) {
      std::fflush(to);
      if (was_paged(*pager, text)) return;
    }
  fmt::print(to, "{}", text);
}

}  // namespace cudabpf::cli
