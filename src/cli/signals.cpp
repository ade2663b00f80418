#include "cli/signals.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace cudabpf::cli {

Signals::Signals() {
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGTERM);
  sigaddset(&ours, SIGHUP);
  sigaddset(&ours, SIGQUIT);
  pthread_sigmask(SIG_BLOCK, &ours, &before_);
  fd_ = Fd(signalfd(-1, &ours, SFD_NONBLOCK | SFD_CLOEXEC));
  hurry_fd_ = Fd(epoll_create1(EPOLL_CLOEXEC));
}

Signals::~Signals() {
  if (!kept_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Signals::leave_to_others(bool one_came) {
  epoll_event readable{};
  readable.events = EPOLLIN;
  epoll_ctl(hurry_fd_.get(), EPOLL_CTL_ADD, fd_.get(), &readable);
  if (!one_came) return;
  came_ = Fd(eventfd(1, EFD_CLOEXEC));
  epoll_ctl(hurry_fd_.get(), EPOLL_CTL_ADD, came_.get(), &readable);
}

void Signals::take_requests() {
  sigset_t request;
  sigemptyset(&request);
  sigaddset(&request, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &request, nullptr);
  request_fd_ = Fd(signalfd(-1, &request, SFD_NONBLOCK | SFD_CLOEXEC));
}

bool Signals::requested() {
  signalfd_siginfo info{};
  return ::read(request_fd_.get(), &info, sizeof(info)) == sizeof(info);
}

Signals::Got Signals::read() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return {};
  return {static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

}  // namespace cudabpf::cli
