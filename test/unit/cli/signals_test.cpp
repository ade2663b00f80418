#include "cli/signals.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <csignal>

#include "support/waiting.hpp"

using cudabpf::cli::Signals;

namespace {

constexpr int OURS[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

bool is_blocked(int signal) {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 1;
}

void unblock(int signal) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

// As the kernel does when a user presses Ctrl-C; to this thread alone.
void raise_from_terminal(int signal) {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = SI_KERNEL;
  REQUIRE(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), signal, &info) == 0);
}

}  // namespace

TEST_CASE("Signals are read, one after the other, instead of ending the program") {
  Signals signals;
  CHECK_FALSE(is_readable(signals.fd()));
  CHECK(signals.read().signal == 0);
  for (int signal : OURS) {
    CAPTURE(signal);
    raise(signal);
    CHECK(is_readable(signals.fd()));
    Signals::Got got = signals.read();
    CHECK(got.signal == signal);
    CHECK_FALSE(got.from_terminal);
  }
  CHECK_FALSE(is_readable(signals.fd()));
  CHECK(signals.read().signal == 0);
}

TEST_CASE("SIGUSR1 is a request, if that is wanted, and is no reason to end") {
  Signals signals;
  CHECK(signals.request_fd() == -1);
  CHECK_FALSE(signals.requested());
  CHECK_FALSE(is_blocked(SIGUSR1));
  signals.take_requests();
  CHECK_FALSE(is_readable(signals.request_fd()));
  CHECK_FALSE(signals.requested());
  for (int i = 0; i < 100; i++) raise(SIGUSR1);
  CHECK(is_readable(signals.request_fd()));
  CHECK_FALSE(is_readable(signals.fd()));
  CHECK(signals.requested());  // all of them at once
  CHECK_FALSE(signals.requested());
  unblock(SIGUSR1);
}

TEST_CASE("A Ctrl-C is distinguished from a signal that a process sent") {
  Signals signals;
  raise_from_terminal(SIGINT);
  Signals::Got got = signals.read();
  CHECK(got.signal == SIGINT);
  CHECK(got.from_terminal);
}

TEST_CASE("Signals are blocked as long as they are read, and no others") {
  REQUIRE_FALSE(is_blocked(SIGTERM));
  {
    Signals signals;
    for (int signal : OURS) CHECK(is_blocked(signal));
    CHECK_FALSE(is_blocked(SIGUSR1));
    CHECK_FALSE(is_blocked(SIGCHLD));
  }
  for (int signal : OURS) CHECK_FALSE(is_blocked(signal));
}

TEST_CASE("What was blocked before stays blocked") {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
  { Signals signals; }
  CHECK(is_blocked(SIGHUP));
  CHECK_FALSE(is_blocked(SIGINT));
  unblock(SIGHUP);
}

TEST_CASE("At the program's end signals stay blocked") {
  {
    Signals signals;
    signals.keep_blocked();
  }
  for (int signal : OURS) CHECK(is_blocked(signal));
  for (int signal : OURS) unblock(signal);
}

TEST_CASE("It is time to hurry once a signal comes after the trace's end") {
  Signals signals;
  signals.leave_to_others(false);
  CHECK_FALSE(is_readable(signals.hurry_fd()));
  raise(SIGTERM);
  CHECK(is_readable(signals.hurry_fd()));
  CHECK(is_readable(signals.hurry_fd()));  // however often one looks
  signals.read();                          // or it would end this program
}

TEST_CASE("It is time to hurry at once if a signal ended the trace") {
  Signals signals;
  raise(SIGINT);
  CHECK(signals.read().signal == SIGINT);
  CHECK_FALSE(is_readable(signals.hurry_fd()));
  signals.leave_to_others(true);
  CHECK(is_readable(signals.hurry_fd()));
}
