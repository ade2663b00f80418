// Which context is current on each thread, as far as the calls of a trace tell.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyze/line.hpp"

namespace cudabpf::analyze {

class Contexts {
 public:
  explicit Contexts(Names& names);

  // Follows a call of the type "context"; the context that it destroyed, 0: none.
  std::uint64_t follow(const Line& call);
  // 0: it is not known.
  std::uint64_t current(std::uint32_t pid, std::uint32_t tid) const;

  void header(const Line& line);
  // A process began, became another program or ended.
  void process(const Line& line);

 private:
  // A context that several users share; it goes away with the last of them.
  struct Primary {
    std::uint64_t context = 0;
    std::uint64_t users = 0;
  };
  struct Process {
    std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> stacks;  // by thread
    std::unordered_map<std::int64_t, Primary> primaries;                   // by device
    bool seen_begin = false;  // so that no user of a primary context was there before the trace
  };
  // What is followed at most, of a process and of all; a context beyond that is not known.
  static constexpr std::size_t MAX_OF_PROCESS = 4096, MAX_KEPT = 1 << 16;

  struct Words {
    Name create, destroy, set_current, push, pop, retain, release, reset, fork, exec, exit;
  };

  Process* process_of(std::uint32_t pid);  // null: there are too many
  void forget(std::uint32_t pid);
  // The map's entry; null: it is not there, and one too many.
  template <typename Map>
  typename Map::mapped_type* entry(Map& map, typename Map::key_type key, std::size_t most);
  void push(Process& process, std::uint32_t tid, std::uint64_t context);
  static void pop(Process& process, std::uint32_t tid);
  static std::uint64_t gone(Process& process, std::uint64_t context);

  Words words_;
  std::unordered_map<std::uint32_t, Process> processes_;
  std::size_t kept_ = 0;  // processes, stacks and primaries
  bool all_seen_begin_ = false;
};

}  // namespace cudabpf::analyze
