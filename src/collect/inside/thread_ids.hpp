// cudabpf's ids for the threads of a process that names them itself, maybe in a pid namespace of
// its own. What the process writes is hostile, and a look into /proc takes time, so that is
// bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "util/system/procfs.hpp"

namespace cudabpf {

class ThreadIds {
 public:
  // Work is counted in threads that are listed; looking at one takes as much as listing this many.
  static constexpr std::int64_t LOOK = 8;
  // Per second, and saved up while less is done. An honest process of 350 threads that begin one by
  // one within a second takes this much, if it has a pid namespace of its own.
  static constexpr std::int64_t MAX_WORK = 1 << 16;

  // `inner_pid`: the process's id in its own pid namespace.
  ThreadIds(std::uint32_t pid, std::uint32_t inner_pid, Procfs procfs = Procfs())
      : pid_(pid), inner_pid_(inner_pid), procfs_(std::move(procfs)) {}

  // The thread that the process calls `inner`. Nothing: the thread is gone, or another process's,
  // or it was not looked up because there was too much to look up. `now_ns`: CLOCK_MONOTONIC.
  std::optional<std::uint32_t> find(std::uint32_t inner, std::uint64_t now_ns);

  std::uint64_t not_looked_up() const { return not_looked_up_; }  // since there was too much

 private:
  bool may_look(std::uint64_t now_ns);
  bool is_of_another_process(std::uint32_t tid) const;
  std::uint32_t inner_of(std::uint32_t tid);  // 0: there is no such thread
  void look_at_new_ones();

  std::uint32_t pid_, inner_pid_;
  Procfs procfs_;
  std::int64_t left_ = MAX_WORK;  // may be negative: then it is owed
  std::uint64_t filled_up_at_ = 0;
  std::uint64_t not_looked_up_ = 0;
  // The threads at the last look: cudabpf's ids by the process's, and the process's by cudabpf's.
  std::unordered_map<std::uint32_t, std::uint32_t> outer_, inner_;
};

}  // namespace cudabpf
