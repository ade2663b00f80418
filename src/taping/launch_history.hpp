// What a process has launched so far, and where its iterations begin. It asks the same analysis
// that finds iterations in a trace, so that both count them alike.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "analyze/derived/graph_contents.hpp"
#include "analyze/iterations/iterations.hpp"
#include "cudabpf/event.hpp"

namespace cudabpf::taping {

// The next iteration of a thread, as its earlier ones were. In training, one thread computes
// forwards and another backwards: then it is that of all threads together.
struct NextIteration {
  std::uint32_t tid = 0;       // 0: of all threads together
  std::uint64_t number = 0;    // from 1
  std::uint64_t warm_up = 0;   // iterations before it that are warm-up
  std::uint64_t launches = 0;  // of an iteration
  std::uint64_t until = 0;     // at least so many launches come before it; 0: it begins now
  bool at_wait = false;        // it begins when the thread has waited for the GPU
  // The last iterations ran nothing that had not run before, and they are a good part of what the
  // program has done. One that tries out codes for the same first, as autotuning does, has
  // iterations then, too, but soon goes on to other code.
  bool is_settled = false;

  // At a wait it may end before all of its launches: some iterations are somewhat shorter.
  std::uint64_t least_launches() const { return launches - launches / 10; }
};

class LaunchHistory {
 public:
  LaunchHistory() : idle_(names_, 0), threads_({}, idle_), together_({}, idle_) {
    process_.number = 1;
  }
  LaunchHistory(const LaunchHistory&) = delete;
  LaunchHistory& operator=(const LaunchHistory&) = delete;

  void call(const Call& call);
  // Nothing: no iterations can be told yet.
  std::optional<NextIteration> next_iteration() const;
  // How many a thread has made; with tid 0, all threads.
  std::uint64_t launches(std::uint32_t tid) const;
  // Why there is no next iteration.
  std::string why_not() const;

 private:
  struct Launched {
    std::uint64_t at = 0;  // ns
    bool waited = false;   // before it, since the launch before
  };
  struct Thread {
    std::vector<Launched> launches;
    bool waited = false;  // since its last launch
  };

  std::optional<NextIteration> next_of(const analyze::ThreadsAtWork& threads) const;
  void look_for_new_code(const Call& call, const analyze::Line& line);

  analyze::Names names_;
  analyze::Process process_;
  analyze::LaunchedGraph graph_;  // of the last call
  analyze::Idle idle_;            // is shown nothing
  analyze::ThreadsAtWork threads_, together_;
  std::map<std::uint32_t, Thread> history_;  // by thread; 0: all together
  // When some was last loaded, or ran for the first time, and the launches by then.
  std::uint64_t new_code_at_ = 0, launches_by_then_ = 0;
  std::unordered_set<std::uint32_t> kernels_;  // that have run: their names' numbers
};

}  // namespace cudabpf::taping
