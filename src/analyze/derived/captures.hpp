// Which streams are being captured: work given to them is not done, but recorded into a graph. A
// capture's mode only forbids calls; in every mode, the stream decides what is recorded.
#pragma once

#include <cstdint>
#include <utility>

#include "analyze/derived/streams.hpp"
#include "trace/read/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class Captures {
 public:
  explicit Captures(Names& names);

  // Fills in whether the call's stream is being captured. Traces say so since format 1.6; of older
  // ones, and where graphs were not followed while tracing, it follows from the calls before.
  void follow(Line& line);

 private:
  bool joins(const Line& line);

  static constexpr std::size_t MOST = 1024;  // streams and events; no real program has more

  void begin(const Line& call);
  void end(const Line& call);

  Name begin_, begin_to_graph_, end_;
  std::uint64_t captures_ = 0;
  HashMap<StreamKey, std::uint64_t, StreamHash> streams_;  // the capture that each is in
  // An event recorded in a captured stream: a stream that waits for it is captured, too.
  using Event = std::pair<std::uint64_t, std::uint64_t>;  // process number, handle
  struct EventHash {
    std::size_t operator()(const Event& event) const { return hash_of(event.first, event.second); }
  };
  HashMap<Event, std::uint64_t, EventHash> events_;
};

}  // namespace cudabpf::analyze
