// The trace that is being made: when it began, when it ends, and where calls go.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "cudabpf/sink.hpp"

namespace cudabpf {

class OpenTrace {
 public:
  // `begin_ns` is CLOCK_MONOTONIC at the trace's ts 0, like all times here that are not called ts.
  OpenTrace(Sink& sink, std::uint64_t begin_ns) : sink_(sink), begin_ns_(begin_ns) {}

  // A process that records itself may report any time.
  std::uint64_t ts_of(std::uint64_t ns) const { return ns > begin_ns_ ? ns - begin_ns_ : 0; }
  // Nothing that begins later is in the trace. May be called while another thread handles records.
  void stop_at(std::uint64_t ns) { stopped_ns_ = ns; }
  bool is_over_at(std::uint64_t ns) const { return ns > stopped_ns_; }

  void add(const Call& call) {
    counts_.add(call);
    sink_.call(call);
  }
  void add(const DriverCall& call) {
    counts_.add(call);
    sink_.driver_call(call);
  }
  const EventCounts& counts() const { return counts_; }
  // For events that are not counted.
  Sink& sink() { return sink_; }

 private:
  Sink& sink_;
  const std::uint64_t begin_ns_;
  std::atomic<std::uint64_t> stopped_ns_{std::numeric_limits<std::uint64_t>::max()};
  EventCounts counts_;
};

}  // namespace cudabpf
