// Finds the device of a call that names none: its stream's, or that of its thread's current
// context, if earlier calls show it. After a loss nothing is known until calls show it again: no
// device is better than the wrong one.
#pragma once

#include <cstdint>
#include <optional>

#include "correlate/calls/bounds.hpp"
#include "correlate/calls/learner.hpp"
#include "cudabpf/event.hpp"
#include "state/current_contexts.hpp"
#include "util/hash.hpp"

namespace cudabpf {

class CallDevices : public Learner {
 public:
  using Device = std::optional<std::int32_t>;

  // `all_seen`: all calls that must be seen for any device to be known.
  CallDevices(bool all_seen, Bounds& bounds) : all_seen_(all_seen), bounds_(bounds) {}

  // Must this function's calls be seen, with their results, for any device to be known?
  static bool follows(const Function& function);

  void began(ThreadId thread, Frame& frame) {
    if (!frame.details.device && all_seen_) frame.details.device = device_of(thread, frame);
  }
  void ended(const CallStack& stack, Call& call);
  void calls_lost(std::uint32_t pid) { process_gone(pid); }
  void process_began(std::uint32_t pid) { processes_[pid].seen_begin = true; }
  void thread_gone(ThreadId thread);
  void process_gone(std::uint32_t pid);

 private:
  static constexpr std::size_t MAX_CONTEXTS = 16;  // of a thread
  struct OfProcess {
    HashMap<std::uint64_t, std::int32_t> devices;  // by context, or by stream
    // The runtime makes a context current before the trace learns its device.
    CurrentContexts contexts{MAX_CONTEXTS};
    bool seen_begin = false;  // all calls of the process were seen
    std::size_t size() const { return devices.size() + contexts.size(); }
  };

  Device device_of(ThreadId thread, const Frame& frame);
  Device current(ThreadId thread);
  void change(OfProcess& process, const Call& call);
  void learn(OfProcess& process, const Call& call, Device current);
  void make_room();
  static Device known(const OfProcess& process, std::uint64_t context);

  const bool all_seen_;
  Bounds& bounds_;
  HashMap<std::uint32_t, OfProcess> processes_;
  std::size_t kept_ = 0;  // of all processes
  ThreadId last_thread_;  // most calls come in runs of one thread; no process: none
  Device last_device_;
};

}  // namespace cudabpf
