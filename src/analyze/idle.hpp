// When a process probably left the GPU idle: from the return of a wait after which nothing of what
// it had asked for is pending, in any stream, to the next launch, copy or fill. And how long it
// took from one launch to the next where nothing was waited for between. What the GPU really did is
// not in a trace, nor is whether another process kept it busy.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/work.hpp"
#include "util/durations.hpp"

namespace cudabpf::analyze {

// A time in which a process gave the GPU nothing to do, and the calls before and after it.
struct Gap {
  std::uint32_t pid = 0, tid = 0;    // the thread that began it
  std::uint64_t begin = 0, end = 0;  // ns
  std::uint64_t after = 0, until = 0;
  Name after_name, until_name;
  std::uint64_t in_calls = 0;  // ns of it that this thread was in CUDA calls
  Name longest_call;           // of them
  std::uint64_t longest = 0;

  Gap() = default;
  explicit Gap(const Line& after);  // begins when it returns
  std::uint64_t time() const { return end - begin; }
  // Its thread makes a call meanwhile; answers how much of the gap that takes.
  std::uint64_t spend(const Line& call);
  void close(const Line& until);
};

// The longest of many.
class LongestGaps {
 public:
  explicit LongestGaps(std::size_t at_most) : at_most_(at_most) {}
  void add(const Gap& gap);
  std::vector<Gap> take();  // the longest first

 private:
  std::size_t at_most_;
  std::vector<Gap> heap_;  // the shortest is at the front
};

class Idle : public Analysis {
 public:
  struct OfProcess {
    std::uint32_t pid = 0;
    std::uint64_t first_work = 0, last_work = 0;  // it could be idle between them
    Durations idle, between;                      // idle times; times between launches
    std::uint64_t in_calls = 0;                   // of the idle time
    std::unordered_map<std::uint32_t, std::uint64_t> meanwhile;  // ns by function
    std::uint64_t untimed_waits = 0;  // of which it is not known when they returned
  };

  Idle(Names& names, std::size_t at_most);

  void line(const Line& line) override;
  void finish(const TraceFacts& facts) override;

  const std::vector<OfProcess>& processes() const { return done_; }     // the most idle first
  const std::vector<Gap>& longest_idle() const { return idle_; }        // the longest first
  const std::vector<Gap>& longest_between() const { return between_; }  // launches, likewise
  const Names& names() const { return names_; }

 private:
  static constexpr std::size_t MAX_EVENTS = 1 << 16;  // that are remembered of a process

  struct Recorded {
    std::uint64_t stream, ts;
  };
  struct Process {
    OfProcess figures;
    std::unordered_map<std::uint64_t, std::uint64_t> pending;  // streams: when work was given last
    std::unordered_map<std::uint64_t, Recorded> events;
    bool is_idle = false;
    Gap gap;                                                     // that goes on, if it is idle
    std::unordered_map<std::uint32_t, std::uint64_t> meanwhile;  // in it, by function
    bool launched = false;                                       // and waited for nothing since
    Gap between;                                                 // that goes on since
  };

  void call(const Line& line, Process& process);
  void work(const Line& line, Work kind, Process& process);
  void done(const Line& line, Process& process);
  static void recorded(const Line& line, Process& process);
  void perhaps_idle(const Line& line, Process& process);
  void close(Process& process);

  Names& names_;
  WorkOf work_of_;
  Name event_, stream_, record_, query_, destroy_, ctx_, exit_, fork_;
  std::unordered_map<std::uint32_t, Process> processes_;
  LongestGaps longest_idle_, longest_between_;
  std::vector<OfProcess> done_;
  std::vector<Gap> idle_, between_;
};

Json idle_json(const Idle& idle);
void add_idle(Page& page, const Idle& idle);

}  // namespace cudabpf::analyze
