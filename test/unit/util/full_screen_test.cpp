#include "util/console/full_screen.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "pseudo_terminal.hpp"
#include "util/system/threads.hpp"

using namespace cudabpf;

namespace {

constexpr std::string_view TAKE = "\033[?1049h\033[?25l\033[?7l",
                           GIVE_BACK = "\033[0m\033[?7h\033[?25h\033[?1049l";

// What a program that has a terminal for itself left of it.
struct Left {
  std::string written;
  int status = 0;
  bool same_modes = false;
};

// On a terminal that controls a process of its own, which does this to its end.
class OwnTerminal {
 public:
  OwnTerminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (!master_ || ::grantpt(master_.get()) != 0 || ::unlockpt(master_.get()) != 0) return;
    slave_ = Fd(::open(::ptsname(master_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  explicit operator bool() const { return static_cast<bool>(slave_); }

  Left left_by(const std::function<void(FullScreen& screen, int terminal)>& work) {
    termios before{}, after{};
    ::tcgetattr(slave_.get(), &before);
    pid_t pid = ::fork();
    if (pid == 0) {
      ::setsid();
      ::ioctl(slave_.get(), TIOCSCTTY, 0);
      std::set_terminate(std::abort);  // Catch2 has one of its own
      for (int number : {SIGSEGV, SIGBUS, SIGABRT, SIGUSR1, SIGTERM}) std::signal(number, SIG_DFL);
      {
        FullScreen screen(slave_.get(), slave_.get());
        work(screen, slave_.get());
      }
      ::_exit(0);
    }
    Left left;
    while (::waitpid(pid, &left.status, WNOHANG) == 0) left.written += read();
    for (std::string more; !(more = read()).empty();) left.written += more;
    ::tcgetattr(slave_.get(), &after);
    left.same_modes = before.c_lflag == after.c_lflag && before.c_iflag == after.c_iflag &&
                      before.c_oflag == after.c_oflag &&
                      std::memcmp(before.c_cc, after.c_cc, sizeof(before.c_cc)) == 0;
    return left;
  }

 private:
  std::string read() {
    constexpr int WAIT_MS = 20;
    pollfd readable{master_.get(), POLLIN, 0};
    char bytes[4096];
    if (::poll(&readable, 1, WAIT_MS) <= 0 || !(readable.revents & POLLIN)) return {};
    ssize_t size = ::read(master_.get(), bytes, sizeof(bytes));
    return {bytes, size > 0 ? static_cast<std::size_t>(size) : 0};
  }

  Fd master_, slave_;
};

void check_given_back(const Left& left) {
  CHECK(left.written.starts_with(TAKE));
  CHECK(left.written.ends_with(GIVE_BACK));
  CHECK(left.same_modes);
}

}  // namespace

TEST_CASE("a terminal is taken, and given back at the end") {
  OwnTerminal terminal;
  if (!terminal) SKIP("no pseudo-terminal can be made");
  Left left = terminal.left_by([](FullScreen& screen, int fd) {
    screen.take();
    termios modes{};
    ::tcgetattr(fd, &modes);
    bool keys_come = !(modes.c_lflag & (ICANON | ECHO)), signals_stay = modes.c_lflag & ISIG;
    screen.write(keys_come && signals_stay && screen.is_in_foreground() ? "good" : "bad");
    screen.take();  // again: after another program had it
  });
  CHECK(left.status == 0);
  check_given_back(left);
  CHECK(left.written == std::string(TAKE) + "good" + std::string(TAKE) + std::string(GIVE_BACK));
}

TEST_CASE("a terminal that was not taken is left alone") {
  OwnTerminal terminal;
  if (!terminal) SKIP("no pseudo-terminal can be made");
  Left left = terminal.left_by([](FullScreen& screen, int) {
    screen.write("nothing");
    screen.give_back();
  });
  CHECK(left.written.empty());
  CHECK(left.same_modes);
}

TEST_CASE("a terminal is given back by whatever ends a program") {
  OwnTerminal terminal;
  if (!terminal) SKIP("no pseudo-terminal can be made");
  for (int number : {SIGSEGV, SIGABRT, SIGBUS, SIGUSR1}) {
    Left left = terminal.left_by([number](FullScreen& screen, int) {
      screen.take();
      ::kill(::getpid(), number);
      ::pause();
    });
    CHECK(WIFSIGNALED(left.status));
    CHECK(WTERMSIG(left.status) == number);
    check_given_back(left);
  }
  Left left = terminal.left_by([](FullScreen& screen, int) {
    screen.take();
    std::thread([] { throw std::runtime_error("no handler catches this"); }).join();
  });
  CHECK(WTERMSIG(left.status) == SIGABRT);
  check_given_back(left);
}

TEST_CASE("a terminal is given back after a fault on a thread without signals") {
#ifdef __SANITIZE_ADDRESS__
  SKIP("the sanitizer reports faults itself");
#endif
  OwnTerminal terminal;
  if (!terminal) SKIP("no pseudo-terminal can be made");
  Left left = terminal.left_by([](FullScreen& screen, int) {
    screen.take();
    thread_without_signals([] { *static_cast<volatile int*>(nullptr) = 1; }).join();
  });
  CHECK(WTERMSIG(left.status) == SIGSEGV);
  check_given_back(left);
}

TEST_CASE("a terminal that Ctrl-S has stopped is given back all the same") {
  OwnTerminal terminal;
  if (!terminal) SKIP("no pseudo-terminal can be made");
  Left left = terminal.left_by([](FullScreen& screen, int fd) {
    screen.take();
    ::tcflow(fd, TCOOFF);
    std::thread drawing([&] { screen.write(std::string(10'000, 'x')); });  // it waits
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    FullScreen::give_back_now();
    drawing.join();
  });
  CHECK(left.status == 0);
  CHECK(left.written.find(GIVE_BACK) != std::string::npos);
  CHECK(left.same_modes);
}

TEST_CASE("whether a terminal can be taken") {
  PseudoTerminal one, other;
  if (one.fd() < 0 || other.fd() < 0) SKIP("no pseudo-terminal can be made");
  CHECK(are_same_terminal(one.fd(), one.fd()));
  CHECK_FALSE(are_same_terminal(one.fd(), other.fd()));
  Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  CHECK_FALSE(are_same_terminal(nothing.get(), nothing.get()));
  for (const char* term : {"dumb", "", static_cast<const char*>(nullptr)}) {
    Variable variable("TERM", term);
    CHECK_FALSE(can_take_terminal(one.fd(), one.fd()));
  }
  Variable variable("TERM", "xterm");
  CHECK_FALSE(can_take_terminal(one.fd(), one.fd()));  // it controls another process, or none
}
