#include "util/console/full_screen.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <iterator>

namespace cudabpf {

namespace {

// The alternate screen, no cursor, and no new line after the last column.
constexpr std::string_view TAKE = "\033[?1049h\033[?25l\033[?7l",
                           GIVE_BACK = "\033[0m\033[?7h\033[?25h\033[?1049l";

// By default these end the process; other code that handles them may do so elsewhere.
constexpr int ENDING[] = {SIGABRT, SIGBUS,  SIGFPE,  SIGILL,  SIGSEGV, SIGSYS,
                          SIGTRAP, SIGXCPU, SIGUSR1, SIGUSR2, SIGALRM};

// What a signal's handler needs.
struct Taken {
  std::atomic<bool> is_taken{false};
  int input = -1, output = -1;
  termios before{};
  std::array<struct sigaction, std::size(ENDING)> handlers{};
};
Taken g_taken;

bool is_foreground(int terminal) { return ::tcgetpgrp(terminal) == ::getpgrp(); }

bool takes_something(int fd, int wait_ms) {
  pollfd wait{fd, POLLOUT, 0};
  return ::poll(&wait, 1, wait_ms) > 0 && (wait.revents & POLLOUT);
}

// Async-signal-safe, and never waits for long.
void give_back_in_a_second() {
  constexpr int AS_IT_IS_MS = 300, AGAIN_MS = 500;
  if (!g_taken.is_taken.exchange(false)) return;
  bool foreground = is_foreground(g_taken.output);
  if (foreground) ::tcsetattr(g_taken.input, TCSANOW, &g_taken.before);
  if (!takes_something(g_taken.output, AS_IT_IS_MS)) {
    if (!foreground) return;
    ::tcflow(g_taken.output, TCOOFF);  // so that the next one has an effect after Ctrl-S
    ::tcflow(g_taken.output, TCOON);
    if (!takes_something(g_taken.output, AGAIN_MS)) return;
  }
  [[maybe_unused]] ssize_t written = ::write(g_taken.output, GIVE_BACK.data(), GIVE_BACK.size());
}

void end_of(int signal, siginfo_t* info, void*) {
  int error = errno;
  give_back_in_a_second();
  for (std::size_t i = 0; i < std::size(ENDING); i++)
    if (ENDING[i] == signal) ::sigaction(signal, &g_taken.handlers[i], nullptr);
  bool comes_again = info->si_code > 0 && (signal == SIGSEGV || signal == SIGBUS ||
                                           signal == SIGILL || signal == SIGFPE);
  if (!comes_again) ::raise(signal);  // once this returns
  errno = error;
}

void set_handlers() {
  struct sigaction action {};
  action.sa_sigaction = end_of;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigfillset(&action.sa_mask);
  for (std::size_t i = 0; i < std::size(ENDING); i++)
    ::sigaction(ENDING[i], &action, &g_taken.handlers[i]);
}

void reset_handlers() {
  for (std::size_t i = 0; i < std::size(ENDING); i++)
    ::sigaction(ENDING[i], &g_taken.handlers[i], nullptr);
}

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (int signal : signals) ::sigaddset(&set, signal);
  return set;
}

}  // namespace

bool are_same_terminal(int one, int other) {
  struct stat first {
  }, second{};
  return ::isatty(one) && ::isatty(other) && ::fstat(one, &first) == 0 &&
         ::fstat(other, &second) == 0 && first.st_rdev == second.st_rdev;
}

bool can_take_terminal(int input, int output) {
  const char* name = std::getenv("TERM");
  std::string_view term = name ? name : "";
  return !term.empty() && term != "dumb" && are_same_terminal(input, output) &&
         ::tcgetpgrp(output) >= 0;
}

ScreenSignals::ScreenSignals() {
  sigset_t ours = set_of({SIGTSTP, SIGCONT, SIGWINCH});
  ::pthread_sigmask(SIG_BLOCK, &ours, &before_);
  fd_ = Fd(::signalfd(-1, &ours, SFD_NONBLOCK | SFD_CLOEXEC));
}

ScreenSignals::~ScreenSignals() {
  // A signal that came late must not stop anything once this has ended: it is discarded.
  signalfd_siginfo info{};
  while (::read(fd_.get(), &info, sizeof(info)) == sizeof(info)) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

FullScreen::FullScreen(int input, int output) : input_(input), output_(output) {
  g_taken.input = input;
  g_taken.output = output;
  set_handlers();
}

FullScreen::~FullScreen() {
  give_back();
  reset_handlers();
}

bool FullScreen::is_in_foreground() const { return is_foreground(output_); }
bool FullScreen::is_taken() const { return g_taken.is_taken; }

void FullScreen::take() {
  if (!g_taken.is_taken && ::tcgetattr(input_, &g_taken.before) != 0) return;
  g_taken.is_taken = true;
  termios keys = g_taken.before;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  keys.c_cc[VMIN] = 1;
  keys.c_cc[VTIME] = 0;
  ::tcsetattr(input_, TCSANOW, &keys);
  write(TAKE);
}

void FullScreen::give_back() { give_back_in_a_second(); }
void FullScreen::give_back_now() { give_back_in_a_second(); }

ScreenFrame::Size FullScreen::size() const {
  winsize size{};
  if (::ioctl(output_, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
    return {size.ws_row, size.ws_col};
  return {24, 80};
}

void FullScreen::write(std::string_view text) const {
  while (!text.empty() && g_taken.is_taken) {
    ssize_t written = ::write(output_, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {  // another user of it made it non-blocking
      takes_something(output_, -1);
    } else if (written == 0 || errno != EINTR) {
      return;  // it is gone
    }
  }
}

FullScreen::Came FullScreen::handle(int signals_fd) {
  Came came = Came::nothing;
  signalfd_siginfo info{};
  while (::read(signals_fd, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGTSTP) stop();
    if (info.ssi_signo != SIGWINCH)
      came = Came::continued;
    else if (came == Came::nothing)
      came = Came::resized;
  }
  return came;
}

// As if cudabpf handled nothing: for the shell, it is SIGTSTP that stops the process.
void FullScreen::stop() {
  give_back();
  sigset_t stopping = set_of({SIGTSTP}), before;
  ::raise(SIGTSTP);
  ::pthread_sigmask(SIG_UNBLOCK, &stopping, &before);  // here it stops, and goes on
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace cudabpf
