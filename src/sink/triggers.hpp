// What makes the flight recorder write what it keeps without being asked.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "cudabpf/call_class.hpp"
#include "cudabpf/event.hpp"
#include "util/hash.hpp"
#include "util/result.hpp"

namespace cudabpf {

struct TriggerRules {
  static constexpr const char *ERROR = "error", *XID = "xid", *IDLE = "idle";
  bool on_error = false;  // a failed call, a crash or an Xid
  bool on_xid = false;
  std::array<std::uint64_t, CALL_CLASSES> longest_ns{};  // of a call of each class; 0: any
  std::uint64_t idle_ns = 0;  // without a launch, of a process that was busy; 0: any

  bool any() const;
};

class Triggers {
 public:
  // A process that makes so many launches within the time after which it is idle is busy.
  static constexpr std::uint64_t BUSY_LAUNCHES = 100;
  static constexpr std::size_t MAX_PROCESSES = 4096;

  explicit Triggers(const TriggerRules& rules) : rules_(rules) {}

  // Why what is kept is to be written, in the words of --dump-on; empty: for no reason. Times are
  // in ns since the trace began.
  std::string call(const Call& call);
  std::string gpu_error() const;
  std::string process(const Process& process);
  std::string time_passed(std::uint64_t now);

 private:
  struct Launches {
    std::uint64_t since = 0, last = 0;    // of the stretch that is counted; the last launch
    std::uint64_t count = 0, before = 0;  // in it, and in the one before
    bool reported = false;
  };
  void launched(std::uint32_t pid, std::uint64_t at);

  const TriggerRules rules_;
  HashMap<std::uint32_t, Launches> launches_;  // by pid
};

}  // namespace cudabpf
