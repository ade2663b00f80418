// Which context is current on each thread, as far as a trace's calls tell.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyze/trace/line.hpp"

namespace cudabpf::analyze {

class CurrentContexts {
 public:
  explicit CurrentContexts(Names& names);

  // Fills in which context is current on the call's thread, and which one the call destroys.
  void follow(Line& line);

 private:
  static constexpr std::size_t MOST_THREADS = 1 << 15;    // of all processes
  static constexpr std::size_t MOST_DESTROYED = 1 << 15;  // likewise
  static constexpr std::size_t MOST_PRIMARIES = 1 << 15;
  using Stack = std::vector<std::uint64_t>;

  // A context that several users share; it is destroyed when the last one releases it.
  struct Primary {
    std::uint64_t context = 0;
    std::uint64_t users = 0;
  };
  struct OfProcess {
    std::unordered_map<std::uint32_t, Stack> stacks;      // by thread
    std::unordered_map<std::int64_t, Primary> primaries;  // by device
    // Contexts that threads may still have on their stacks: every call that needs one fails.
    std::unordered_set<std::uint64_t> destroyed;
  };
  struct Words {
    Name create, destroy, set_current, push, pop, retain, release, reset;
  };

  std::uint64_t current(const Line& call);
  std::uint64_t change(const Line& call);
  Stack& stack(OfProcess& process, std::uint32_t tid);
  void push(OfProcess& process, std::uint32_t tid, std::uint64_t context);
  void pop(OfProcess& process, std::uint32_t tid);
  void forget(std::uint64_t process);

  Words words_;
  std::unordered_map<std::uint64_t, OfProcess> processes_;  // by number
  std::size_t stacks_ = 0, destroyed_ = 0, primaries_ = 0;  // of all processes
  std::uint64_t last_process_ = 0;
  std::uint32_t last_tid_ = 0;
  std::uint64_t last_current_ = 0;  // on that thread of that process
};

}  // namespace cudabpf::analyze
