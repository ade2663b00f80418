// What makes the flight recorder write what it keeps without being asked.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "cudabpf/call_class.hpp"
#include "cudabpf/event.hpp"
#include "state/rank_positions.hpp"
#include "util/hash.hpp"
#include "util/result.hpp"

namespace cudabpf {

struct TriggerRules {
  static constexpr const char *ERROR = "error", *XID = "xid", *IDLE = "idle", *BEHIND = "behind",
                              *POST = "post";
  // A limit on how many of a process's calls of one class may take longer than a time.
  static constexpr std::uint64_t SHARES = 1'000'000;
  struct SlowShare {
    CallClass of = CallClass::other;
    std::string quantile;           // "p99"
    std::uint64_t most_longer = 0;  // of SHARES
    std::uint64_t longest_ns = 0;
  };
  bool on_error = false;  // a failed call, a crash or an Xid
  bool on_xid = false;
  std::array<std::uint64_t, CALL_CLASSES> longest_ns{};  // of a call of each class; 0: any
  std::vector<SlowShare> slow_shares;
  std::uint64_t behind_ns = 0;  // of a rank, in a collective that others have entered; 0: any
  std::uint64_t idle_ns = 0;    // without a launch, of a process that was busy; 0: any

  bool any() const;
  bool limit_calls() const;  // some class
};

class Triggers {
 public:
  // A process that makes so many launches within the time after which it is idle is busy.
  static constexpr std::uint64_t BUSY_LAUNCHES = 100;
  // Shares are of the calls that end within this time: of so many at least, and of as many as
  // make one that may take longer.
  static constexpr std::uint64_t SHARE_WINDOW_NS = 10'000'000'000, LEAST_IN_SHARE = 100;
  static constexpr std::size_t MAX_PROCESSES = 4096, MAX_OPEN_CALLS = 1 << 16;

  explicit Triggers(const TriggerRules& rules) : rules_(rules) {}

  // Why what is kept is to be written, in the words of --dump-on; empty: for no reason. Times are
  // in ns since the trace began.
  std::string call(const Call& call);
  std::string open_call(const Call& call, std::uint64_t open_ns) const;
  std::string gpu_error() const;
  std::string process(const Process& process);
  std::string time_passed(std::uint64_t now);

  // Calls that are open matter.
  bool watch_open_calls() const { return rules_.limit_calls(); }
  // A dump has this call, which is open: if it has taken too long already, it need not trigger
  // another.
  void written(const Call& call, std::uint64_t open_ns);

 private:
  struct Launches {
    std::uint64_t since = 0, last = 0;    // of the stretch that is counted; the last launch
    std::uint64_t count = 0, before = 0;  // in it, and in the one before
    bool reported = false;
  };
  struct Share {
    std::uint64_t calls = 0, longer = 0;
  };
  void launched(std::uint32_t pid, std::uint64_t at);
  void ended(const Call& call);
  bool is_new_behind(std::uint64_t now);
  std::string slow_share() const;
  bool takes_too_long(const Function& function, std::uint64_t ns) const;

  const TriggerRules rules_;
  HashMap<std::uint32_t, Launches> launches_;          // by pid
  HashMap<std::uint32_t, std::vector<Share>> shares_;  // by pid, of each rule, in the window
  ranks::Positions positions_;
  bool behind_reported_ = false;
  std::uint64_t window_ns_ = 0;  // when it began
  // Open calls that have taken too long and are in a dump, by id.
  std::unordered_set<std::uint64_t> written_;
};

}  // namespace cudabpf
