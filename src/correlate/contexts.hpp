// Which device a thread's work goes to: that of the context current on it, as far as its calls
// tell. After a loss nothing is known until they tell again: none is better than the wrong one.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "cudabpf/event.hpp"

namespace cudabpf {

class Contexts {
 public:
  using Device = std::optional<std::int32_t>;

  // Does the function work on the current context's device, without naming it?
  static bool concerned(const Function& function);
  Device device_of(std::uint32_t pid, std::uint32_t tid) {
    if (pid != last_pid_ || tid != last_tid_) look_up(pid, tid);
    return last_device_;
  }
  // Follows a call that has ended.
  void follow(const Call& call);

  // Some call of the process is missing from the trace.
  void calls_lost(std::uint32_t pid) { process_gone(pid); }
  void thread_gone(std::uint32_t pid, std::uint32_t tid);
  void process_gone(std::uint32_t pid);

 private:
  struct OfProcess {
    std::unordered_map<std::uint64_t, std::int32_t> devices;  // by context
    // The contexts of each thread, of which the last is current. The runtime makes one current
    // before it says of which device it is.
    std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> current;
  };

  void look_up(std::uint32_t pid, std::uint32_t tid);
  static void change(OfProcess& process, const Call& call);
  static Device known(const OfProcess& process, std::uint64_t context);

  std::unordered_map<std::uint32_t, OfProcess> processes_;
  std::uint32_t last_pid_ = 0;  // most calls come in runs of one thread
  std::uint32_t last_tid_ = 0;
  Device last_device_;
};

}  // namespace cudabpf
