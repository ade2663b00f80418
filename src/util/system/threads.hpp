// Threads that signals do not reach.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace cudabpf {

// The main thread handles signals. SIGPIPE, SIGXFSZ and SIGTTOU go to the thread that writes, where
// they must become errors instead of ending the process. Its dispositions stay as they are, because
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
