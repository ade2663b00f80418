#include "collect/inside/thread_ids.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace cudabpf {

bool ThreadIds::may_look(std::uint64_t now_ns) {
  constexpr std::uint64_t SECOND = 1'000'000'000;
  std::uint64_t passed = filled_up_at_ ? std::min(now_ns - filled_up_at_, 8 * SECOND) : SECOND;
  left_ = std::min(left_ + static_cast<std::int64_t>(passed * MAX_WORK / SECOND), MAX_WORK);
  filled_up_at_ = now_ns;
  return left_ > 0;
}

std::optional<std::uint32_t> ThreadIds::find(std::uint32_t inner, std::uint64_t now_ns) {
  if (inner == inner_pid_) return pid_;
  if (!may_look(now_ns)) {
    not_looked_up_++;
    return std::nullopt;
  }
  if (inner_pid_ == pid_) {
    left_ -= LOOK;
    return is_of_another_process(inner) ? std::nullopt : std::optional(inner);
  }
  if (auto known = outer_.find(inner); known != outer_.end()) {
    if (inner_of(known->second) == inner) return known->second;
    inner_.erase(known->second);  // the thread has ended, and another may have its id
  }
  look_at_new_ones();
  auto known = outer_.find(inner);
  return known == outer_.end() ? std::nullopt : std::optional(known->second);
}

// The process says that this is one of its threads. The thread may have ended by now, so an id that
// no thread has is believed; but not one of another process's thread.
bool ThreadIds::is_of_another_process(std::uint32_t tid) const {
  auto pid = static_cast<pid_t>(pid_);
  std::string path = procfs_.path(pid, fmt::format("task/{}", tid));
  if (access(path.c_str(), F_OK) == 0 || !procfs_.is_ours()) return false;
  pid_t owner = procfs_.process_of(static_cast<pid_t>(tid));
  return owner > 0 && owner != pid;
}

std::uint32_t ThreadIds::inner_of(std::uint32_t tid) {
  left_ -= LOOK;
  auto ids = procfs_.ns_tids(static_cast<pid_t>(pid_), static_cast<pid_t>(tid));
  return ids.empty() ? 0 : static_cast<std::uint32_t>(ids.back());
}

void ThreadIds::look_at_new_ones() {
  auto threads = procfs_.threads(static_cast<pid_t>(pid_));
  left_ -= static_cast<std::int64_t>(threads.size()) + 1;
  std::unordered_map<std::uint32_t, std::uint32_t> outer, inner;
  for (pid_t thread : threads) {
    auto tid = static_cast<std::uint32_t>(thread);
    auto known = inner_.find(tid);
    std::uint32_t its_own = known == inner_.end() ? inner_of(tid) : known->second;
    if (!its_own) continue;
    outer[its_own] = tid;
    inner[tid] = its_own;
  }
  outer_ = std::move(outer);
  inner_ = std::move(inner);
}

}  // namespace cudabpf
