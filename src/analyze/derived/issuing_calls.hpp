// The calls that give a GPU work. Lines of GPU operations come a tenth of a second or more later
// and name their call only by id; what was known of it is kept here.
#pragma once

#include <cstdint>
#include <utility>

#include "analyze/derived/calls_by_id.hpp"
#include "analyze/derived/streams.hpp"
#include "trace/read/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

struct IssuingCall {
  // At most a few thousand calls' work is queued, and what a GPU did is reported within seconds.
  static constexpr std::size_t MAX = std::size_t{1} << 20;

  std::uint64_t id = 0;
  std::uint64_t process = 0;  // its number
  std::uint64_t ts = 0, end = 0;
  std::uint64_t depends = 0;  // of an event: the call whose work came before it; 0: not known
  std::uint64_t within = 0;   // the call of a library above the driver that made it; 0: none
  std::uint64_t graph = 0;    // the number of the one that it launches; 0: none, or not known
  std::uint64_t handle = 0;
  std::uint32_t tid = 0;
  const RangePlace* place = nullptr;  // the program's range in which it was made; null: none
  bool wanted = true;                 // as its line is
  const PythonPlace* python = nullptr;
  Name kernel;
  Dimensions grid{}, block{};
  std::uint32_t shared = 0;
  NodeWork node = NodeWork::none;  // what it would be in a graph: a kernel, a graph
  bool is_async = false;           // this kind of call need not wait for its work
  bool timed = false;              // its duration is known
  bool nested = false;             // it was made inside another
  // Its stream had been made to wait for an event, a host function or a value in memory.
  bool has_to_wait = false;

  // Both clocks have their error, so work may seem to begin before it was issued.
  std::uint64_t queued_until(std::uint64_t begin) const { return begin > ts ? begin - ts : 0; }
};

class IssuingCalls {
 public:
  explicit IssuingCalls(std::size_t most = IssuingCall::MAX) : calls_(most) {}

  // Notes a call, and fills in which one issued the GPU operation of a line. Nothing is kept if the
  // trace has no GPU times.
  void follow(Line& line);

 private:
  // If there are more streams or events than these, all are forgotten: then it is not known what
  // work waited for.
  static constexpr std::size_t MAX_STREAMS = 1 << 16, MAX_EVENTS = 1 << 16;

  using Event = std::pair<std::uint64_t, std::uint64_t>;  // process number, handle
  struct EventHash {
    std::size_t operator()(const Event& event) const { return hash_of(event.first, event.second); }
  };

  void call(const Line& line);
  void follow_stream(const Line& line);

  bool measured_ = false;  // there are, or may be, GPU operations to join
  CallsById<IssuingCall> calls_;
  // Calls: the one whose work was the last of a stream, or the last before an event; the one that a
  // stream was made to wait for.
  HashMap<StreamKey, std::uint64_t, StreamHash> last_work_, waiting_;
  HashMap<Event, std::uint64_t, EventHash> events_;
};

}  // namespace cudabpf::analyze
