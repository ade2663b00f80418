// Streams and events. All work is done at once, so there is never anything to wait for.
#include <time.h>

#include <map>
#include <set>

#include "behaviour.hpp"
#include "capture.hpp"
#include "compute/compute.hpp"
#include "driver.hpp"
#include "objects.hpp"
#include "state.hpp"

namespace fake {
namespace {

struct Streams {
  std::set<Handle> live;
  std::map<Handle, double> events;  // with the time each was recorded, in ms; 0 is never
};

Streams& streams() {
  static Streams* all = new Streams;
  return *all;
}

double now_ms() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// An operation on memory in stream order that is no copy and no fill.
Status other(Handle stream) {
  return captured(stream, kSuccess, [] { return Work{.does = Does::other}; }).value_or(kSuccess);
}

}  // namespace

// The default streams, null and the constants 1 and 2, always exist.
bool is_stream(Handle stream) {
  return reinterpret_cast<uint64_t>(stream) <= 2 || streams().live.contains(stream);
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
    capture_stream_destroyed(stream);
  }
  driver_destroy_stream(stream);
  return kSuccess;
}

Status cuStreamSynchronize(Handle stream) {
  if (const auto forbidden = forbid_in_capture(stream)) return *forbidden;
  wait_for_gpu();
  return kSuccess;
}

Status cuStreamQuery(Handle stream) { return forbid_in_capture(stream).value_or(kSuccess); }

Status cuStreamWaitEvent(Handle stream, Handle event, uint32_t flags) {
  return capture_wait(stream, event, flags).value_or(kSuccess);
}

Status cuLaunchHostFunc(Handle stream, void* function, void* data) {
  const Status checked = function ? kSuccess : kInvalidValue;
  const auto work = [&] { return Work{.does = Does::host, .host = {function, data}}; };
  if (const auto status = captured(stream, checked, work)) return *status;
  if (checked != kSuccess) return checked;
  reinterpret_cast<void (*)(void*)>(function)(data);
  return kSuccess;
}

Status cuStreamAddCallback(Handle stream, void* callback, void* data, uint32_t flags) {
  if (!callback || flags != 0) return kInvalidValue;
  if (const auto forbidden = forbid_in_capture(stream)) return *forbidden;
  reinterpret_cast<void (*)(Handle, Status, void*)>(callback)(stream, kSuccess, data);
  return kSuccess;
}

Status cuStreamWriteValue32(Handle stream, DevicePtr, uint32_t, uint32_t) { return other(stream); }
Status cuStreamWriteValue64(Handle stream, DevicePtr, uint64_t, uint32_t) { return other(stream); }
Status cuStreamWaitValue32(Handle stream, DevicePtr, uint32_t, uint32_t) { return other(stream); }
Status cuStreamWaitValue64(Handle stream, DevicePtr, uint64_t, uint32_t) { return other(stream); }
Status cuStreamBatchMemOp(Handle stream, uint32_t, void*, uint32_t) { return other(stream); }

Status cuEventCreate(Handle* event, uint32_t) {
  if (!event) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  *event = new_handle();
  streams().events[*event] = 0;
  return kSuccess;
}

Status cuEventDestroy(Handle event) {
  const std::lock_guard lock(state_mutex());
  capture_event_destroyed(event);
  return streams().events.erase(event) ? kSuccess : kInvalidHandle;
}

Status cuEventRecord(Handle event, Handle stream) {
  return cuEventRecordWithFlags(event, stream, 0);
}

Status cuEventRecordWithFlags(Handle event, Handle stream, uint32_t flags) {
  if (const auto status = capture_record(stream, event, flags)) return *status;
  const std::lock_guard lock(state_mutex());
  const auto found = streams().events.find(event);
  if (found == streams().events.end()) return kInvalidHandle;
  found->second = now_ms();
  return kSuccess;
}

Status cuEventSynchronize(Handle) {
  wait_for_gpu();
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
