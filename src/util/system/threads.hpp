// Threads that signals do not reach.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace cudabpf {

// Signals are the main thread's to handle, and SIGPIPE, SIGXFSZ and SIGTTOU, which come to the
// thread that writes, must be errors and not the end. The process's dispositions stay as they are:
// traced commands inherit them.
template <typename Work>
std::thread thread_without_signals(Work work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace cudabpf
