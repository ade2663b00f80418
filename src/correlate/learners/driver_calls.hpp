// Operations on the NVIDIA driver's devices: turns each one's two records into one event. A thread
// is in one operation at a time, and may fault inside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "correlate/calls/bounds.hpp"
#include "correlate/calls/learner.hpp"
#include "correlate/calls/open_calls.hpp"
#include "correlate/calls/open_trace.hpp"
#include "correlate/learners/driver_objects.hpp"
#include "cudabpf/event.hpp"
#include "cudabpf/ioctl.hpp"
#include "cudabpf/record.hpp"
#include "cudabpf/thread_id.hpp"
#include "util/hash.hpp"

namespace cudabpf {

class DriverCalls : public Learner {
 public:
  using DeviceOf = std::function<DriverDevice(std::uint32_t number)>;

  DriverCalls(DeviceOf device_of, DriverVersion version, Bounds& bounds, OpenCalls& open_calls,
              OpenTrace& trace)
      : device_of_(std::move(device_of)),
        version_(version),
        open_calls_(open_calls),
        trace_(trace),
        bounds_(bounds),
        objects_(bounds) {}

  void on_record(const Record& record);
  void driver_is(const DriverVersion& version) {
    version_ = version;
    devices_.clear();  // its numbers are assigned anew
  }
  // A thread has ended, as its last record says.
  void thread_exited(const abi::cb_head& head);

  void thread_ends(ThreadId thread);
  void process_gone(std::uint32_t pid);
  void finished();
  // Operations whose end the kernel never reported to the kernel side.
  std::uint64_t returns_missed() const { return returns_missed_; }

 private:
  // A thread, and whether the operation is its fault or its other one.
  using Key = std::pair<ThreadId, bool>;
  static Key key_of(const abi::cb_head& head) {
    return {thread_of(head), head.function == abi::CB_FAULT};
  }
  struct Open {
    DriverCall call;
    IoctlWords words;
    std::vector<std::byte> structure, parameters;  // what `words` points into
    std::uint32_t drops = 0;
  };
  void begins(const Record& record);
  void ends(const Record& record);
  // An interrupt, which has one record.
  void interrupted(const Record& record);
  void emit(const DriverCall& call);
  void miss_end(Key key, std::uint32_t drops);
  void give_up(Key key, bool unfinished);
  void make_room();
  const DriverDevice& device(std::uint32_t number);

  DeviceOf device_of_;
  DriverVersion version_;
  OpenCalls& open_calls_;
  OpenTrace& trace_;
  HashMap<std::uint32_t, DriverDevice> devices_;
  std::map<Key, Open> open_;
  std::uint64_t returns_missed_ = 0;
  Bounds& bounds_;
  DriverObjects objects_;
};

}  // namespace cudabpf
