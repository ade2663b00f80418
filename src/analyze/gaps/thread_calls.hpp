// What threads did while a GPU had nothing to do: their calls are kept until the GPU's own times
// come, which is a tenth of a second to seconds later. The latest MAX are kept.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "analyze/derived/issuing_calls.hpp"
#include "analyze/gaps/critical_path.hpp"
#include "analyze/gaps/in_calls.hpp"
#include "trace/read/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

// What a thread did in some time, and for how long others of its process were in calls meanwhile.
struct ThreadTime {
  struct InFunction {
    Name name;
    std::uint64_t time = 0;
  };
  std::vector<InFunction> functions;  // the longest first
  std::uint64_t in_calls = 0;
  std::uint64_t others = 0;   // it was in no call, and another thread was in one that is neither a
                              // wait nor a copy to the host (which mostly waits)
  std::uint64_t begun = 0;    // calls that began in it
  std::uint64_t untimed = 0;  // of these: it is not known how long they took
  bool known = false;         // all of its calls in that time are kept
};

class ThreadCalls {
 public:
  static constexpr std::size_t MAX = 1 << 20;  // calls of all threads
  static constexpr std::size_t MAX_THREADS = 1 << 14;

  explicit ThreadCalls(std::size_t most = MAX) : most_(most) {}

  void call(const Line& line);
  // The number of the process that last made a call with this pid; 0: none did.
  std::uint64_t process_of(std::uint32_t pid) const;
  // Fills in what the thread did from `begin` to `end`. Calls that began before `issued` are
  // counted.
  void look_at(std::uint64_t process, std::uint32_t tid, std::uint64_t begin, std::uint64_t end,
               std::uint64_t issued, ThreadTime& found) const;
  // Notes that the call waited for its work, although its kind is asynchronous. False: known
  // already, or the call is no longer kept.
  bool waited(const IssuingCall& issuer);
  // The thread's waits for the GPU that ended between the two.
  std::vector<PathWait> waits_of(std::uint64_t process, std::uint32_t tid, std::uint64_t begin,
                                 std::uint64_t end) const;

 private:
  static constexpr std::size_t MAX_PIDS = 1 << 16;

  struct Key {
    std::uint64_t process = 0;
    std::uint32_t tid = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return hash_of(key.process, key.tid); }
  };
  struct Span {  // a call
    std::uint64_t begin = 0, end = 0;
    Name name;
    bool untimed = false, waits = false;
  };
  struct Thread {
    std::deque<Span> calls;        // one after the other
    std::uint64_t kept_since = 0;  // ts; of earlier calls nothing is kept
  };
  struct Together {  // the threads of a process
    std::uint32_t tid = 0;
    bool several = false;
    InCalls in_calls;  // except waits, and copies to the host, some of which wait
  };
  struct Kept {
    Key key;
    std::uint64_t ts = 0;
  };

  void keep(const Line& line);
  void drop_oldest();
  void drop_quiet_threads();

  std::size_t most_;
  HashMap<Key, Thread, KeyHash> threads_;
  std::uint64_t dropped_until_ = 0;  // when threads that are no longer kept made their last call
  std::unordered_map<std::uint64_t, Together> together_;  // by the number of a process in threads_
  std::deque<Kept> order_;
  HashMap<std::uint32_t, std::uint64_t> processes_;  // numbers by pid
  std::uint32_t last_pid_ = 0;
  std::uint64_t last_process_ = 0;
};

}  // namespace cudabpf::analyze
