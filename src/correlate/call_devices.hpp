// Finds the device of a call that names none: its stream's, or that of its thread's current
// context, as far as earlier calls tell. After a loss nothing is known until calls tell it again:
// no device is better than the wrong one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "correlate/bounds.hpp"
#include "cudabpf/event.hpp"
#include "util/hash.hpp"

namespace cudabpf {

class CallDevices {
 public:
  using Device = std::optional<std::int32_t>;

  explicit CallDevices(Bounds& bounds) : bounds_(bounds) {}

  // Must this function's calls be seen, with their results, for any device to be known?
  static bool follows(const Function& function);
  // The device of a call that begins.
  Device device_of(std::uint32_t pid, std::uint32_t tid, const Function& function,
                   std::span<const std::uint64_t> words, const Details& details);
  // Follows a call that has ended.
  void follow(const Call& call);

  // Some call of the process is missing from the trace.
  void calls_lost(std::uint32_t pid) { process_gone(pid); }
  void thread_gone(std::uint32_t pid, std::uint32_t tid);
  void process_gone(std::uint32_t pid);

 private:
  struct OfProcess {
    HashMap<std::uint64_t, std::int32_t> devices;  // by context, or by stream
    // Each thread's stack of contexts; the last is current. The runtime makes a context current
    // before the trace learns its device.
    HashMap<std::uint32_t, std::vector<std::uint64_t>> current;
    std::size_t size() const { return devices.size() + current.size(); }
  };

  Device current(std::uint32_t pid, std::uint32_t tid);
  void change(OfProcess& process, const Call& call);
  void make_room();
  static Device known(const OfProcess& process, std::uint64_t context);

  Bounds& bounds_;
  HashMap<std::uint32_t, OfProcess> processes_;
  std::size_t kept_ = 0;        // devices and threads, of all processes
  std::uint32_t last_pid_ = 0;  // most calls come in runs of one thread
  std::uint32_t last_tid_ = 0;
  Device last_device_;
};

}  // namespace cudabpf
