// Streams, events and stream capture. All work is done at once, so there is never anything to wait
// for.
#include <time.h>

#include <atomic>
#include <map>
#include <set>

#include "behaviour.hpp"
#include "driver.hpp"
#include "objects.hpp"
#include "state.hpp"

namespace fake {
namespace {

struct Streams {
  std::set<Handle> live;
  std::map<Handle, Handle> capturing;  // with the graph it goes into
  std::map<Handle, double> events;     // with the time each was recorded, in ms; 0 is never
};

Streams& streams() {
  static Streams* all = new Streams;
  return *all;
}

std::atomic<int> captures;  // so that a launch need not lock when nothing is captured

double now_ms() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// The default streams, null and the constants 1 and 2, always exist.
bool is_stream(Handle stream) {
  return reinterpret_cast<uint64_t>(stream) <= 2 || streams().live.contains(stream);
}

}  // namespace

Handle captured_graph(Handle stream) {
  if (captures.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard lock(state_mutex());
  const auto capture = streams().capturing.find(stream);
  return capture == streams().capturing.end() ? nullptr : capture->second;
}

Status cuStreamCreate(Handle* stream, uint32_t) {
  if (!stream) return kInvalidValue;
  const Handle made = new_handle();
  if (const Status bad = driver_create_stream(made)) return bad;
  const std::lock_guard lock(state_mutex());
  streams().live.insert(*stream = made);
  return kSuccess;
}

Status cuStreamCreateWithPriority(Handle* stream, uint32_t flags, int32_t) {
  return cuStreamCreate(stream, flags);
}

Status cuStreamDestroy(Handle stream) {
  {
    const std::lock_guard lock(state_mutex());
    if (streams().live.erase(stream) == 0) return kInvalidHandle;
    if (streams().capturing.erase(stream)) --captures;
  }
  driver_destroy_stream(stream);
  return kSuccess;
}

Status cuStreamBeginCapture(Handle stream, uint32_t) {
  if (!stream) return kStreamCaptureUnsupported;
  const std::lock_guard lock(state_mutex());
  if (!is_stream(stream)) return kInvalidHandle;
  if (streams().capturing.contains(stream)) return kIllegalState;
  streams().capturing[stream] = new_graph();
  ++captures;
  return kSuccess;
}

Status cuStreamEndCapture(Handle stream, Handle* graph) {
  if (!graph) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const auto capture = streams().capturing.find(stream);
  if (capture == streams().capturing.end()) return kIllegalState;
  *graph = capture->second;
  streams().capturing.erase(capture);
  --captures;
  return kSuccess;
}

Status cuStreamIsCapturing(Handle stream, void* status) {
  if (!status) return kInvalidValue;
  *static_cast<int32_t*>(status) = captured_graph(stream) != nullptr;
  return kSuccess;
}

Status cuLaunchHostFunc(Handle, void* function, void* data) {
  if (!function) return kInvalidValue;
  reinterpret_cast<void (*)(void*)>(function)(data);
  return kSuccess;
}

Status cuStreamAddCallback(Handle stream, void* callback, void* data, uint32_t flags) {
  if (!callback || flags != 0) return kInvalidValue;
  reinterpret_cast<void (*)(Handle, Status, void*)>(callback)(stream, kSuccess, data);
  return kSuccess;
}

Status cuEventCreate(Handle* event, uint32_t) {
  if (!event) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  *event = new_handle();
  streams().events[*event] = 0;
  return kSuccess;
}

Status cuEventDestroy(Handle event) {
  const std::lock_guard lock(state_mutex());
  return streams().events.erase(event) ? kSuccess : kInvalidHandle;
}

Status cuEventRecord(Handle event, Handle) {
  const std::lock_guard lock(state_mutex());
  const auto found = streams().events.find(event);
  if (found == streams().events.end()) return kInvalidHandle;
  found->second = now_ms();
  return kSuccess;
}

Status cuEventElapsedTime(float* milliseconds, Handle start, Handle end) {
  if (!milliseconds) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const auto first = streams().events.find(start), last = streams().events.find(end);
  if (first == streams().events.end() || last == streams().events.end() || first->second == 0 ||
      last->second == 0) {
    return kInvalidHandle;
  }
  *milliseconds = static_cast<float>(last->second - first->second);
  return kSuccess;
}

}  // namespace fake
