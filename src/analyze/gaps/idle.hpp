// When a process is known to have left the GPU idle: from the return of a wait that leaves nothing
// pending in any of its streams to the next launch, copy or fill. That is a lower bound: the GPU
// may have been done long before the wait, or between two launches. Also the times from one launch
// to the next with no wait in between. A trace shows neither what the GPU really did nor whether
// another process kept it busy.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/derived/streams.hpp"
#include "analyze/gaps/gap.hpp"
#include "analyze/gaps/idle_by_range.hpp"
#include "analyze/work.hpp"
#include "util/durations.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class Idle : public Analysis {
 public:
  struct OfProcess {
    std::uint64_t number = 0;  // of the process in the trace, since pids are reused
    std::uint32_t pid = 0;
    Name comm;
    std::uint64_t first_work = 0, last_work = 0;
    std::uint64_t working_time = 0;  // from first to last work: it could be idle between them
    Durations idle, between;         // idle times; times between launches
    std::uint64_t in_calls = 0;      // of the idle time
    std::uint64_t untimed = 0;       // calls in it whose duration is not known
    std::unordered_map<std::uint32_t, std::uint64_t> meanwhile;  // ns by function
    std::uint64_t untimed_waits = 0;  // waits whose return time is not known
    bool lost_track = false;          // it gave work to more streams than are followed

    void add(const OfProcess& other);
  };

  // Times are those in `part`; what began before it is cut.
  Idle(Names& names, std::size_t at_most, Part part = {});

  void line(const Line& line) override;
  void outside(const Line& line) override { this->line(line); }
  void finish(const TraceFacts& facts) override;

  const std::vector<OfProcess>& processes() const { return done_; }  // the most idle first
  // All other processes, added up.
  const OfProcess& others() const { return others_; }
  std::uint64_t other_processes() const { return other_processes_; }
  // The longest first, of those that are kept.
  std::span<const Gap> longest_idle(std::size_t at_most = ALL_GAPS) const {
    return first_of(idle_, at_most);
  }
  std::span<const Gap> longest_between(std::size_t at_most = ALL_GAPS) const {
    return first_of(between_, at_most);
  }
  const IdleByRange& idle_by_range() const { return idle_by_range_; }
  const Names& names() const { return names_; }
  // How long the process that made the last call had been idle until then.
  std::uint64_t idle_until_now() const { return until_now_; }

 private:
  static constexpr std::size_t KEPT = 256;             // processes
  static constexpr std::size_t MAX_STREAMS = 1 << 12;  // with work pending, of a process
  static constexpr std::size_t MAX_PENDING = 1 << 17;  // the same, of all processes
  // Functions that a process calls while the GPU is idle; later ones are counted as one.
  static constexpr std::size_t MAX_FUNCTIONS = 256;
  static constexpr std::size_t MAX_EVENTS = 1 << 17;  // remembered, of all processes

  struct Given {  // the last work given to a stream
    std::uint64_t ts = 0;
    std::uint64_t context = 0;  // 0: not known
  };
  struct Recorded {
    StreamKey stream;
    std::uint64_t ts = 0;
  };
  using Times = std::unordered_map<std::uint32_t, std::uint64_t>;  // ns by function
  struct State {                                                   // a process
    OfProcess figures;
    HashMap<StreamKey, Given, StreamHash> pending;
    HashMap<std::uint64_t, Recorded> events;  // by handle
    bool is_idle = false;
    Gap gap;                // the current one, if it is idle
    Times meanwhile;        // in it
    bool launched = false;  // and has waited for nothing since
    Gap between;            // the one that began then
  };
  struct MoreIdle {
    bool operator()(const OfProcess& a, const OfProcess& b) const {
      return std::pair(b.idle.total(), a.pid) < std::pair(a.idle.total(), b.pid);
    }
  };

  State& state_of(const Line& line);
  void call(const Line& line, State& process);
  void work(const Line& line, Work kind, State& process);
  void done(const Line& line, State& process);
  void recorded(const Line& line, State& process);
  void destroyed(const Line& line, State& process);
  void perhaps_idle(const Line& line, State& process);
  void empty(State& process);
  void close(OfProcess& figures);
  void add_time(Times& times, std::uint32_t function, std::uint64_t time) const;

  Names& names_;
  Part part_;
  Name others_name_;
  std::unordered_map<std::uint64_t, State> processes_;  // by number
  std::uint64_t last_number_ = 0;
  State* last_ = nullptr;
  std::size_t events_ = 0, pending_ = 0;  // of all processes
  std::uint64_t until_now_ = 0;
  LongestGaps longest_idle_, longest_between_;
  IdleByRange idle_by_range_;
  Largest<OfProcess, MoreIdle> closed_{KEPT};
  std::vector<OfProcess> done_;
  OfProcess others_;
  std::uint64_t other_processes_ = 0;
  std::vector<Gap> idle_, between_;
};

Json idle_json(const Idle& idle, std::size_t gaps_at_most = ALL_GAPS);
Json gaps_columns();  // of idle times, for the page of `report`

}  // namespace cudabpf::analyze
