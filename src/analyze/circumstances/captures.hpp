// Which streams are being captured: what is asked of them is not done, but recorded into a graph.
// The modes of a capture only forbid calls; what it takes in is told by the stream in all of them.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "analyze/circumstances/streams.hpp"
#include "analyze/trace/line.hpp"

namespace cudabpf::analyze {

class Captures {
 public:
  explicit Captures(Names& names);

  // Says of a call whether its stream is being captured.
  void follow(Line& line);

 private:
  static constexpr std::size_t MOST = 1024;  // streams and events; more are of no real program

  void begin(const Line& call);
  void end(const Line& call);

  Name begin_, begin_to_graph_, end_;
  std::uint64_t captures_ = 0;
  std::unordered_map<StreamKey, std::uint64_t, StreamHash> streams_;  // in which capture each is
  // Recorded in a captured stream: one that waits for it is captured, too.
  using Event = std::pair<std::uint64_t, std::uint64_t>;  // the process's number, and its handle
  struct EventHash {
    std::size_t operator()(const Event& event) const { return mixed(event.first, event.second); }
  };
  std::unordered_map<Event, std::uint64_t, EventHash> events_;
};

}  // namespace cudabpf::analyze
