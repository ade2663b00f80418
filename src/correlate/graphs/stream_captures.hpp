// Which streams of one process are being captured: work given to them is not done, but goes into a
// graph. A capture's mode only forbids calls; in every mode, the stream decides what is captured.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "correlate/graphs/graph_holding.hpp"
#include "cudabpf/event.hpp"

namespace cudabpf {

class StreamCaptures {
 public:
  bool empty() const { return streams_.empty(); }

  // The call has succeeded, and begins a capture on its stream, into this.
  void begin(const Call& call, GraphHolding::Ptr into);
  // The capture of the call's stream has ended, for every stream that had joined it. What it went
  // into; null: none was known.
  GraphHolding::Ptr end(const Call& call);
  // What work given to the call's stream goes into; null: the GPU.
  GraphHolding* into(const Call& call) const;
  // Streams join a capture by waiting for an event that was recorded in it. Recording an external
  // event, or waiting for one, is itself captured: true.
  bool follow_event(const Call& call);
  void stream_destroyed(const Call& call) { streams_.erase(stream_of(call)); }
  // Calls are missing: it is not known what is captured.
  void calls_lost();
  template <typename Visit>
  void each_work(Visit&& visit) const {
    for (const auto& [stream, into] : streams_) into->each_work(visit);
  }

 private:
  // No real program has more streams and events in captures.
  static constexpr std::size_t MOST = 1024;

  struct Stream {
    std::uint64_t handle;
    std::uint32_t tid;  // whose default stream it is; 0: it is no thread's
    bool operator==(const Stream&) const = default;
  };
  struct StreamHash {
    std::size_t operator()(const Stream& stream) const;
  };

  static Stream stream_of(const Call& call);

  std::unordered_map<Stream, GraphHolding::Ptr, StreamHash> streams_;
  std::unordered_map<std::uint64_t, GraphHolding::Ptr> events_;  // by handle
};

}  // namespace cudabpf
