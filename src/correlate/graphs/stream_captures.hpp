// Which streams of one process are being captured: work submitted to them is not done, but goes
// into a graph. A capture's mode only forbids calls; in every mode, the stream decides what is
// captured.
#pragma once

#include <cstdint>

#include "correlate/graphs/graph_holding.hpp"
#include "cudabpf/event.hpp"
#include "util/hash.hpp"

namespace cudabpf {

class StreamCaptures {
 public:
  bool empty() const { return streams_.empty(); }

  // The call has succeeded, and begins a capture on its stream, into this graph.
  void begin(const Call& call, GraphHolding::Ptr into);
  // The capture of the call's stream has ended, for every stream that had joined it. Returns the
  // graph; null: none was known.
  GraphHolding::Ptr end(const Call& call);
  // The graph that work in the call's stream goes into; null: it goes to the GPU.
  GraphHolding* into(const Call& call) const;
  // Streams join a capture by waiting for an event that was recorded in it. Recording an external
  // event, or waiting for one, is itself captured: true.
  bool follow_event(const Call& call);
  // If a capture began on this stream, it ends for all streams.
  void stream_destroyed(const Call& call);
  // Calls are missing: it is not known what is captured. If captures were kept, all work after a
  // missed end would be taken for captured.
  void calls_lost();
  // It is no longer known what goes into graphs.
  void forget(GraphUnknown why) {
    for (auto& [stream, captured] : streams_) captured.into->forget(why);
  }
  template <typename Visit>
  void each_work(Visit&& visit) const {
    for (const auto& [stream, captured] : streams_) captured.into->each_work(visit);
  }

 private:
  // No real program has more streams and events in captures.
  static constexpr std::size_t MAX = 1024;

  struct Stream {
    std::uint64_t handle;
    std::uint32_t tid;  // the thread that has this default stream; 0: it is not a thread's
    bool operator==(const Stream&) const = default;
  };
  struct Captured {
    GraphHolding::Ptr into;
    bool began = false;  // the capture began on it; it did not join
  };
  struct StreamHash {
    std::size_t operator()(const Stream& stream) const;
  };

  static Stream stream_of(const Call& call);

  HashMap<Stream, Captured, StreamHash> streams_;
  HashMap<std::uint64_t, GraphHolding::Ptr> events_;  // by handle
};

}  // namespace cudabpf
