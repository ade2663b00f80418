// Streams that are captured: what they are given to do goes into a graph instead.
#pragma once

#include <atomic>
#include <optional>

#include "graph_nodes.hpp"
#include "types.hpp"

namespace fake {

extern std::atomic<bool> anything_captured;

// What a call returns that gives this work to a captured stream, if that is what it is; nothing if
// the stream is not captured. `checked`: a status other than success refuses the work, and with it
// the whole capture.
std::optional<Status> capture_work(Handle stream, Status checked, const Work& work);

// The same, without making up the work if nothing is captured.
template <typename Make>
std::optional<Status> captured(Handle stream, Status checked, Make make) {
  if (!anything_captured.load(std::memory_order_relaxed)) return std::nullopt;
  return capture_work(stream, checked, make());
}

// The executable becomes a child graph.
std::optional<Status> capture_launch(Handle stream, Handle executable);
std::optional<Status> capture_record(Handle stream, Handle event, uint32_t flags);
std::optional<Status> capture_wait(Handle stream, Handle event, uint32_t flags);
// A call that must not be made for a captured stream.
std::optional<Status> forbid_in_capture(Handle stream);

// Hold state_mutex.
void capture_stream_destroyed(Handle stream);
void capture_event_destroyed(Handle event);

}  // namespace fake
