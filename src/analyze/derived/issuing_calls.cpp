#include "analyze/derived/issuing_calls.hpp"

#include "analyze/derived/processes.hpp"
#include "trace/header.hpp"
#include "trace/read/handles.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

void IssuingCalls::follow(Line& line) {
  switch (line.kind) {
    case LineKind::header:
      measured_ |= line.header->measures_gpus();
      break;
    case LineKind::gpu_times:
      measured_ = true;
      break;
    case LineKind::call:
      // A failed call has issued nothing.
      if (measured_ && !line.failed()) call(line);
      break;
    case LineKind::gpu_operation:
    case LineKind::host_copy:
      measured_ = true;
      line.issuer = line.has(Field::call) ? calls_.find(line.call) : nullptr;
      break;
    default:
      break;
  }
}

void IssuingCalls::call(const Line& line) {
  if (!gives_work(line.work)) return follow_stream(line);
  IssuingCall call{.id = line.id,
                   .process = line.process->number,
                   .ts = line.ts,
                   .end = saturating_sum(line.ts, line.duration),
                   .within = line.within,
                   .graph = line.graph,
                   .handle = line.handle,
                   .tid = line.tid,
                   .place = line.place,
                   .wanted = line.wanted,
                   .python = line.python,
                   .kernel = line.kernel,
                   .grid = line.grid,
                   .block = line.block,
                   .shared = line.shared,
                   .node = line.meaning->node,
                   .is_async = line.async,
                   .timed = line.has(Field::duration),
                   .nested = line.has(Field::parent)};
  StreamKey stream = stream_of(line);
  if (auto wait = waiting_.find(stream); wait != waiting_.end()) {
    call.has_to_wait = true;
    call.depends = wait->second;
    waiting_.erase(wait);
  }
  if (last_work_.size() >= MAX_STREAMS) last_work_.clear();
  last_work_[stream] = line.id;
  calls_.add(call);
}

void IssuingCalls::follow_stream(const Line& line) {
  if (line.captured) return;
  bool records = line.meaning->event == EventEffect::record;
  bool waits =
      line.type == Type::stream && (line.op == Op::wait_event || line.op == Op::host_func ||
                                    line.op == Op::memop || line.op == Op::stream_callback);
  if (!records && !waits) return;
  Event event{line.process->number, handle_in(line.args, "hEvent")};
  if (records) {
    auto last = last_work_.find(stream_of(line));
    if (events_.size() >= MAX_EVENTS) events_.clear();
    events_[event] = last == last_work_.end() ? 0 : last->second;
    return;
  }
  auto recorded = events_.find(event);
  if (waiting_.size() >= MAX_STREAMS) waiting_.clear();
  waiting_[stream_of(line)] = recorded == events_.end() ? 0 : recorded->second;
}

}  // namespace cudabpf::analyze
