// Which device a call works on that names none: that of its stream, or of the context current on
// its thread, as far as earlier calls tell. After a loss nothing is known until they tell again:
// none is better than the wrong one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "correlate/bounds.hpp"
#include "cudabpf/event.hpp"

namespace cudabpf {

class CallDevices {
 public:
  using Device = std::optional<std::int32_t>;

  explicit CallDevices(Bounds& bounds) : bounds_(bounds) {}

  // Must its calls be seen, with their results, for any device to be known?
  static bool follows(const Function& function);
  // The device that a call is for, as it begins.
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
    std::unordered_map<std::uint64_t, std::int32_t> devices;  // by context, or by stream
    // The contexts of each thread, of which the last is current. The runtime makes one current
    // before it says of which device it is.
    std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> current;
    std::size_t size() const { return devices.size() + current.size(); }
  };

  Device current(std::uint32_t pid, std::uint32_t tid);
  void change(OfProcess& process, const Call& call);
  void make_room();
  static Device known(const OfProcess& process, std::uint64_t context);

  Bounds& bounds_;
  std::unordered_map<std::uint32_t, OfProcess> processes_;
  std::size_t kept_ = 0;        // devices and threads, of all processes
  std::uint32_t last_pid_ = 0;  // most calls come in runs of one thread
  std::uint32_t last_tid_ = 0;
  Device last_device_;
};

}  // namespace cudabpf
