// What a process has launched so far, and where its iterations begin. It asks the same analysis
// that finds iterations in a trace, so that both count them alike.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "analyze/iterations/iterations.hpp"
#include "cudabpf/event.hpp"

namespace cudabpf::taping {

// A thread's next iteration, as its earlier ones were.
struct NextIteration {
  std::uint32_t tid = 0;
  std::uint64_t number = 0;    // from 1
  std::uint64_t warm_up = 0;   // iterations before it that are warm-up
  std::uint64_t launches = 0;  // of an iteration
  std::uint64_t until = 0;     // launches of the thread before it begins; 0: it begins now
};

class LaunchHistory {
 public:
  LaunchHistory() : idle_(names_, 0), threads_({}, idle_) { process_.number = 1; }
  LaunchHistory(const LaunchHistory&) = delete;
  LaunchHistory& operator=(const LaunchHistory&) = delete;

  void call(const Call& call);
  // Nothing: no iterations can be told yet.
  std::optional<NextIteration> next_iteration() const;
  std::uint64_t launches(std::uint32_t tid) const;
  std::uint64_t launches() const { return launches_; }  // of all threads

 private:
  struct Launched {
    std::uint64_t at = 0;  // ns
    bool waited = false;   // before it, since the launch before
  };
  struct Thread {
    std::vector<Launched> launches;
    bool waited = false;  // since its last launch
  };

  analyze::Names names_;
  analyze::Process process_;
  analyze::Idle idle_;  // is shown nothing
  analyze::ThreadsAtWork threads_;
  std::map<std::uint32_t, Thread> history_;  // by thread
  std::uint64_t launches_ = 0;
};

}  // namespace cudabpf::taping
