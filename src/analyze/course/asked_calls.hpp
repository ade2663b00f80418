// The calls that asked a GPU for work, and what their threads did: kept until the GPU's own times
// come, which is a tenth of a second to seconds later. The latest so many are kept.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "analyze/calls_by_id.hpp"
#include "analyze/circumstances/streams.hpp"
#include "analyze/course/critical_path.hpp"
#include "analyze/course/in_calls.hpp"
#include "trace/read/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

struct AskedCall {
  static constexpr std::size_t MOST = std::size_t{1} << 20;

  std::uint64_t id = 0;
  std::uint64_t process = 0;  // its number
  std::uint64_t ts = 0, end = 0;
  std::uint32_t tid = 0;
  Name name;
  // Its stream was told before to wait for an event, a host function or a value in memory.
  bool has_to_wait = false;
  std::uint64_t depends = 0;  // of an event: the call whose work came before it; 0: not known
  bool is_async = false;      // by what it is, it need not wait for its work
};

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

class AskedCalls {
 public:
  static constexpr std::size_t MOST = 1 << 20;  // calls of all threads
  static constexpr std::size_t MOST_THREADS = 1 << 14;

  explicit AskedCalls(std::size_t most = MOST, std::size_t most_asked = AskedCall::MOST)
      : most_(most), asked_(most_asked) {}

  void call(const Line& line);
  // Null: there was none of that id, or it was too long ago.
  const AskedCall* find(std::uint64_t id) const { return asked_.find(id); }
  // The number of the process that last made a call with this pid; 0: none did.
  std::uint64_t process_of(std::uint32_t pid) const;
  // Fills in what the thread did from `begin` to `end`. Of calls that began before `asked`, the
  // number is counted.
  void look_at(std::uint64_t process, std::uint32_t tid, std::uint64_t begin, std::uint64_t end,
               std::uint64_t asked, ThreadTime& told) const;
  // Notes that it waited for its work, although this kind of call is asynchronous. False: that is
  // known already, or it is no longer kept.
  bool waited(const AskedCall& asked);
  // The thread's waits for the GPU that ended between the two.
  std::vector<PathWait> waits_of(std::uint64_t process, std::uint32_t tid, std::uint64_t begin,
                                 std::uint64_t end) const;

 private:
  // If there are more streams or events than these, all are forgotten: then it is not known what
  // work waited for.
  static constexpr std::size_t MOST_STREAMS = 1 << 16, MOST_EVENTS = 1 << 16;
  static constexpr std::size_t MOST_PIDS = 1 << 16;

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
  struct Event {
    std::uint64_t process = 0, handle = 0;
    bool operator==(const Event&) const = default;
  };
  struct EventHash {
    std::size_t operator()(const Event& event) const {
      return hash_of(event.process, event.handle);
    }
  };
  struct Thread {
    std::deque<Span> calls;        // one after the other
    std::uint64_t kept_since = 0;  // ts; of earlier calls nothing is kept
  };
  struct Together {  // the threads of a process
    std::uint32_t tid = 0;
    bool several = false;
    InCalls in_calls;  // but for waits, and copies to the host, of which some wait
  };
  struct Kept {
    Key key;
    std::uint64_t ts = 0;
  };

  void follow_streams(const Line& line, bool gives);
  void keep(const Line& line);
  void drop_oldest();
  void drop_quiet_threads();

  std::size_t most_;
  CallsById<AskedCall> asked_;
  HashMap<Key, Thread, KeyHash> threads_;
  std::uint64_t dropped_until_ = 0;  // when threads that are no longer kept made their last call
  std::unordered_map<std::uint64_t, Together> together_;  // by the number of a process in threads_
  std::deque<Kept> order_;
  // Calls: whose work was the last of a stream, or the last before an event; what streams were told
  // to wait for.
  HashMap<StreamKey, std::uint64_t, StreamHash> last_work_, waiting_;
  HashMap<Event, std::uint64_t, EventHash> events_;
  HashMap<std::uint32_t, std::uint64_t> processes_;  // numbers by pid
  std::uint32_t last_pid_ = 0;
  std::uint64_t last_process_ = 0;
};

}  // namespace cudabpf::analyze
