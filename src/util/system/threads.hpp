// Threads that signals do not reach.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace cudabpf {

// The main thread handles signals, except those of a thread's own faults: blocked, these would end
// the process even if they are handled. SIGPIPE, SIGXFSZ and SIGTTOU go to the thread that writes,
// where they must become errors instead of ending the process. Their dispositions stay as they are,
// because traced commands inherit them.
template <typename Work>
std::thread thread_without_signals(Work work) {
  sigset_t all, before;
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace cudabpf
