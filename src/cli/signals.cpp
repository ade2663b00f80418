#include "cli/signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

namespace cudabpf::cli {

Signals::Signals() {
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGTERM);
  sigaddset(&ours, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &ours, &before_);
  fd_ = Fd(signalfd(-1, &ours, SFD_NONBLOCK | SFD_CLOEXEC));
}

Signals::~Signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

Signals::Got Signals::read() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return {};
  return {static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

}  // namespace cudabpf::cli
