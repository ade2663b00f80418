// What each thread issued to the GPU, cut into segments: from one wait for the GPU to the next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/gaps/idle.hpp"
#include "analyze/thread_filter.hpp"
#include "analyze/work.hpp"
#include "util/largest.hpp"

namespace cudabpf::analyze {

// What a thread has spent up to some moment; times in ns, of calls not made inside others.
struct Spent {
  std::uint64_t recorded = 0;  // calls, also of other libraries and inside other calls
  std::uint64_t calls = 0;
  std::uint64_t in_calls = 0;  // in calls of any kind
  std::uint64_t module = 0, memory = 0, launching = 0, to_device = 0, to_host = 0, waiting = 0;
  std::uint64_t idle = 0;     // how long its process left the GPU idle, at least
  std::uint64_t kernels = 0;  // known to be given to the GPU

  // Adds a call of that kind.
  void add(Work kind, std::uint64_t time);
  Spent operator-(const Spent& before) const;
  Spent& operator+=(const Spent& other);
};

struct Moment {
  std::uint64_t ts = 0;
  Spent spent;  // until then
};

// A segment in which something was launched.
struct Segment {
  Moment begin;                  // its first launch
  Moment end;                    // of the wait that ends it, or of its last call
  std::uint64_t first_call = 0;  // the id of its first launch
  std::uint32_t launches = 0;
  Name first, last;  // kernels
};

struct Launch {
  Moment at;
  std::uint64_t call = 0;  // its id
  Name kernel;
  std::uint64_t graph = 0;  // the number of one that runs several kernels
};

struct ThreadWork {
  std::uint64_t process = 0;  // its number in the trace, since pids are reused
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t process_began = 0;  // 0: before the trace
  std::uint64_t process_ended = 0;  // 0: after it
  std::uint64_t first_call = 0, last_end = 0;
  Moment set_up;  // when the first call that is not setup came; ts 0: none did
  Spent all;
  std::uint64_t launches = 0;
  Spent at_from, at_to;  // what it had spent when the part that is wanted began, and ended
  std::uint64_t launches_in_part = 0;
  std::vector<Segment> segments;
  bool segments_left_out = false;
  Spent in_part() const { return at_to - at_from; }
  // Kernels, with those known to be in graphs; a launch is at least one.
  std::uint64_t most_launched() const { return std::max(launches, all.kernels); }
  // When large copies to the device ended; of several with no launch in between, only the last.
  std::vector<Moment> large_copies;
  // The last launches of the segment that has the most launches.
  std::vector<Launch> longest;
  Moment longest_end, longest_end_before;  // when the last of them returned, and the one before
  std::size_t longest_segment = 0;
  std::uint32_t longest_launches = 0;
};

struct ProcessWork {
  std::uint64_t number = 0;  // in the trace
  std::uint32_t pid = 0;
  Name host;           // where there are several
  Name comm, command;  // if known
  std::optional<std::uint32_t> rank;
  std::uint64_t threads = 0, calls = 0, launches = 0, waiting = 0;

  void add(const ProcessWork& other);
};

class ThreadsAtWork : public Analysis {
 public:
  // A copy to the device that is at least this large is taken to bring weights.
  static constexpr std::uint64_t LARGE = std::uint64_t{64} << 10;
  static constexpr std::size_t MAX_SEGMENTS = 1 << 20;  // of all threads: 200 MB
  // At most this many threads are followed at once. If there are more, those quiet for longest are
  // taken to have ended, since a trace does not say when threads end.
  static constexpr std::size_t MAX_THREADS = 1 << 14;

  // `idle` must see each line first. Threads are followed through the whole trace; what processes
  // did is shown of the part.
  ThreadsAtWork(ThreadFilter wanted, const Idle& idle, Part part = {})
      : wanted_(wanted), idle_(idle), part_(part) {}

  void line(const Line& line) override;
  void outside(const Line& line) override { this->line(line); }
  void finish(const TraceFacts& facts) override;

  // The thread that launches most in each of the busiest processes, the busiest first.
  const std::vector<ThreadWork>& threads() const { return threads_; }
  const std::vector<ProcessWork>& processes() const { return processes_; }  // the busiest first
  // All other processes, added up.
  const ProcessWork& others() const { return others_; }
  std::uint64_t other_processes() const { return other_processes_; }
  std::uint64_t put_away() const { return put_away_; }  // threads that may not have ended
  std::uint64_t launches() const { return launches_; }  // of all threads, in the whole trace

 private:
  static constexpr std::size_t KEPT_THREADS = 16, KEPT_PROCESSES = 1024;
  static constexpr std::size_t MAX_COPIES = 1 << 12;      // of a thread
  static constexpr std::size_t MAX_ALL_COPIES = 1 << 17;  // of all of them
  static constexpr std::size_t MAX_LAUNCHES = 1 << 15;    // kept of a segment
  static constexpr std::size_t MAX_SEQUENCES = 16;        // whose launches are kept meanwhile

  struct Unfinished {
    std::uint64_t ts = 0;  // 0: there is none
    Work kind = Work::other;
  };
  struct Open {
    ThreadWork work;
    Segment segment;
    bool copied_since_launch = false;
    bool keeps_launches = false;
    Unfinished unfinished;  // its last call
    std::vector<Launch> launches;
    Moment launches_end, launches_end_before;  // when the last of them returned, and the one before
  };
  struct OpenProcess {
    ProcessWork work;
    std::optional<ThreadWork> busiest;  // of its threads that are closed and wanted
  };
  using Key = std::pair<std::uint64_t, std::uint32_t>;  // process number, thread
  using Threads = std::map<Key, Open>;
  struct BusierThread {
    bool operator()(const ThreadWork& a, const ThreadWork& b) const {
      return std::tuple(a.most_launched(), a.all.calls, b.pid, b.tid) >
             std::tuple(b.most_launched(), b.all.calls, a.pid, a.tid);
    }
  };
  struct BusierProcess {
    bool operator()(const ProcessWork& a, const ProcessWork& b) const {
      return std::tuple(a.launches, a.calls, b.pid) > std::tuple(b.launches, b.calls, a.pid);
    }
  };

  Open& thread(const Line& line);
  void process(const Line& line);
  void call(const Line& line);
  void counted(const Line& line, Open& open);
  void copied(const Line& line, Open& open);
  void launched(const Line& line, Open& open);
  void close_segment(Open& open);
  void settle(Open& open, std::uint64_t end) const;
  Threads::iterator close(Threads::iterator thread, std::uint64_t end);
  void close_process(std::uint64_t number, std::uint64_t end);
  void keep_busiest(std::optional<ThreadWork>& busiest, ThreadWork work);
  void keep(ThreadWork work);  // its process is gone
  void give_up(const ThreadWork& work);
  void put_quiet_away();

  ThreadFilter wanted_;
  const Idle& idle_;
  Part part_;
  Threads open_;
  std::unordered_map<std::uint64_t, OpenProcess> open_processes_;  // by number
  Key last_key_;
  Open* last_ = nullptr;
  std::size_t segments_ = 0, sequences_ = 0, copies_ = 0;
  std::uint64_t put_away_ = 0, other_processes_ = 0, launches_ = 0;
  Largest<ThreadWork, BusierThread> closed_{KEPT_THREADS};
  Largest<ProcessWork, BusierProcess> closed_processes_{KEPT_PROCESSES};
  ProcessWork others_;
  std::vector<ThreadWork> threads_;
  std::vector<ProcessWork> processes_;
};

}  // namespace cudabpf::analyze
