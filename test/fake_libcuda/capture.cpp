#include "capture.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <string_view>

#include "behaviour.hpp"
#include "objects.hpp"
#include "observe.hpp"
#include "state.hpp"

namespace fake {

std::atomic<bool> anything_captured;

namespace {

constexpr uint64_t kLegacyStream = 1, kThreadStream = 2;  // the values of the default stream
constexpr uint32_t kExternal = 1;                         // CU_EVENT_RECORD_EXTERNAL, …_WAIT_…
constexpr uint32_t kRelaxed = 2;                          // CU_STREAM_CAPTURE_MODE_RELAXED

// Each thread has a default stream of its own.
struct Stream {
  uint64_t handle;
  long tid;
  auto operator<=>(const Stream&) const = default;
};

struct Capture {
  Handle graph;
  Stream origin;
  uint32_t mode;
  long tid;              // that began it
  uint64_t id;           // for the program
  bool invalid = false;  // a call was made that it does not allow
  bool ended = false;
  std::set<Handle> leaves = {};  // its nodes that no other waits for
};

// A stream that is captured, or an event that was recorded in one.
struct Captured {
  std::shared_ptr<Capture> capture;
  std::vector<Handle> last;  // the nodes that what comes next waits for
};

struct Captures {
  std::map<Stream, Captured> streams;
  std::map<Handle, Captured> events;
  uint64_t begun = 0;
};

Captures& captures() {
  static Captures* all = new Captures;
  return *all;
}

long own_tid() { return syscall(SYS_gettid); }

// Only if a test watches is it known which variant of a function was called.
bool means_thread_stream() {
  const char* symbol = current_call().symbol;
  return symbol && (std::string_view(symbol).ends_with("_ptsz") ||
                    std::string_view(symbol).ends_with("_ptds"));
}

Stream stream_of(Handle stream) {
  auto handle = reinterpret_cast<uint64_t>(stream);
  if (handle == 0) handle = means_thread_stream() ? kThreadStream : kLegacyStream;
  return {handle, handle == kThreadStream ? own_tid() : 0};
}

Captured* find(Handle stream) {
  if (captures().streams.empty()) return nullptr;
  const auto found = captures().streams.find(stream_of(stream));
  return found == captures().streams.end() ? nullptr : &found->second;
}

Status refuse(Captured& stream, Status status) {
  stream.capture->invalid = true;
  return status;
}

// Adds a node, behind the last ones of the stream.
Status add(Captured& stream, Status checked, const Work& work, const Graph* child = nullptr) {
  Capture& capture = *stream.capture;
  if (capture.invalid) return kStreamCaptureInvalidated;
  Graph* graph = find_graph(capture.graph);
  if (checked != kSuccess || !graph) return refuse(stream, graph ? checked : kInvalidValue);
  call_was_captured();
  const bool empty = work.size == 0 && (work.does == Does::copy || work.does == Does::set);
  if (empty) return kSuccess;  // as by the real driver, that is no node
  GraphNode& node = graph->add(work);
  if (child) node.hold_graph().copy_from(*child);
  node.after = stream.last;
  for (const Handle before : stream.last) capture.leaves.erase(before);
  capture.leaves.insert(node.handle);
  stream.last = {node.handle};
  return kSuccess;
}

Work event_work(uint32_t type, Handle event) {
  Given given;
  given.event = event;
  return {.type = type, .given = std::make_shared<const Given>(std::move(given))};
}

void end(const std::shared_ptr<Capture>& capture) {
  capture->ended = true;
  std::erase_if(captures().streams,
                [&](const auto& stream) { return stream.second.capture == capture; });
  anything_captured = !captures().streams.empty();
}

void destroy_graph_of(const Capture& capture) {
  if (Graph* graph = find_graph(capture.graph)) destroy_graph(*graph);
}

Status begin(Handle stream, uint32_t mode, Graph* into) {
  const Stream origin = stream_of(stream);
  if (origin.handle == kLegacyStream) return kStreamCaptureUnsupported;
  if (!is_stream(stream)) return kInvalidHandle;
  if (find(stream)) return kIllegalState;
  const Handle graph = into ? into->handle : new_graph().handle;
  captures().streams[origin] = {
      std::make_shared<Capture>(Capture{graph, origin, mode, own_tid(), ++captures().begun}), {}};
  anything_captured = true;
  return kSuccess;
}

bool is_unjoined(const Captured& origin) {
  return std::any_of(
      origin.capture->leaves.begin(), origin.capture->leaves.end(), [&](Handle leaf) {
        return std::find(origin.last.begin(), origin.last.end(), leaf) == origin.last.end();
      });
}

Status report_capture(Handle stream, void* status, uint64_t* id = nullptr, Handle* graph = nullptr,
                      void* nodes = nullptr, uint64_t* count = nullptr) {
  if (!status) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const Captured* captured = find(stream);
  *static_cast<uint32_t*>(status) = captured ? captured->capture->invalid ? 2 : 1 : 0;
  if (id) *id = captured ? captured->capture->id : 0;
  if (graph) *graph = captured ? captured->capture->graph : nullptr;
  if (nodes)  // that the next one would wait for
    *static_cast<const Handle**>(nodes) = captured ? captured->last.data() : nullptr;
  if (count) *count = captured ? captured->last.size() : 0;
  return kSuccess;
}

}  // namespace

std::optional<Status> capture_work(Handle stream, Status checked, const Work& work) {
  const std::lock_guard lock(state_mutex());
  Captured* captured = find(stream);
  if (!captured) return std::nullopt;
  return add(*captured, checked, work);
}

std::optional<Status> capture_launch(Handle stream, Handle executable) {
  if (!anything_captured.load(std::memory_order_relaxed)) return std::nullopt;
  const std::lock_guard lock(state_mutex());
  Captured* captured = find(stream);
  if (!captured) return std::nullopt;
  const Graph* launched = find_executable(executable);
  return add(*captured, launched ? kSuccess : kInvalidValue, {.does = Does::graph}, launched);
}

std::optional<Status> capture_record(Handle stream, Handle event, uint32_t flags) {
  const std::lock_guard lock(state_mutex());
  Captured* captured = find(stream);
  if (!captured) {
    captures().events.erase(event);
    return std::nullopt;
  }
  if (flags & kExternal) return add(*captured, kSuccess, event_work(kRecordNode, event));
  if (captured->capture->invalid) return kStreamCaptureInvalidated;
  captures().events[event] = *captured;
  return kSuccess;
}

// A stream that waits for an event of a capture joins it.
std::optional<Status> capture_wait(Handle stream, Handle event, uint32_t flags) {
  const std::lock_guard lock(state_mutex());
  Captured* waiting = find(stream);
  if (waiting && flags & kExternal) return add(*waiting, kSuccess, event_work(kWaitNode, event));
  const auto recorded = captures().events.find(event);
  if (recorded == captures().events.end()) {
    if (!waiting) return std::nullopt;
    return refuse(*waiting, kStreamCaptureIsolation);
  }
  Captured& of = recorded->second;
  if (of.capture->ended) return kInvalidValue;
  if (of.capture->invalid) return kStreamCaptureInvalidated;
  if (!waiting) {
    captures().streams[stream_of(stream)] = of;
    return kSuccess;
  }
  if (waiting->capture != of.capture) {
    refuse(of, kStreamCaptureMerge);
    return refuse(*waiting, kStreamCaptureMerge);
  }
  waiting->last.insert(waiting->last.end(), of.last.begin(), of.last.end());
  return kSuccess;
}

std::optional<Status> forbid_in_capture(Handle stream) {
  if (!anything_captured.load(std::memory_order_relaxed)) return std::nullopt;
  const std::lock_guard lock(state_mutex());
  Captured* captured = find(stream);
  if (!captured) return std::nullopt;
  return refuse(*captured, kStreamCaptureUnsupported);
}

// With the stream that a capture began on, the capture goes.
void capture_stream_destroyed(Handle stream) {
  const auto found = captures().streams.find(stream_of(stream));
  if (found == captures().streams.end()) return;
  const std::shared_ptr<Capture> capture = found->second.capture;
  if (capture->origin != found->first) {
    captures().streams.erase(found);
    return;
  }
  destroy_graph_of(*capture);
  end(capture);
}

void capture_event_destroyed(Handle event) { captures().events.erase(event); }

Status cuStreamBeginCapture(Handle stream) { return cuStreamBeginCapture(stream, 0); }

Status cuStreamBeginCapture(Handle stream, uint32_t mode) {
  const std::lock_guard lock(state_mutex());
  return begin(stream, mode, nullptr);
}

Status cuStreamBeginCaptureToGraph(Handle stream, Handle graph, void*, void*, uint64_t,
                                   uint32_t mode) {
  const std::lock_guard lock(state_mutex());
  Graph* into = find_graph(graph);
  return into ? begin(stream, mode, into) : kInvalidValue;
}

// However it ends, it has ended, but on a stream that it did not begin on.
Status cuStreamEndCapture(Handle stream, Handle* graph) {
  if (!graph) return kInvalidValue;
  *graph = nullptr;
  const std::lock_guard lock(state_mutex());
  Captured* captured = find(stream);
  if (!captured) return kIllegalState;
  const std::shared_ptr<Capture> capture = captured->capture;
  if (capture->origin != stream_of(stream)) return refuse(*captured, kStreamCaptureUnmatched);
  Status status = kSuccess;
  if (capture->invalid)
    status = kStreamCaptureInvalidated;
  else if (capture->mode != kRelaxed && capture->tid != own_tid())
    status = kStreamCaptureWrongThread;
  else if (is_unjoined(*captured))
    status = kStreamCaptureUnjoined;
  if (status == kSuccess)
    *graph = capture->graph;
  else
    destroy_graph_of(*capture);
  end(capture);
  return status;
}

Status cuStreamIsCapturing(Handle stream, void* status) { return report_capture(stream, status); }

Status cuStreamGetCaptureInfo(Handle stream, void* status, uint64_t* id, Handle* graph, void* nodes,
                              uint64_t* count) {
  return report_capture(stream, status, id, graph, nodes, count);
}

Status cuStreamGetCaptureInfo(Handle stream, void* status, uint64_t* id, Handle* graph, void* nodes,
                              void*, uint64_t* count) {
  return report_capture(stream, status, id, graph, nodes, count);
}

}  // namespace fake
