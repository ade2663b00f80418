#include "analyze/derived/captures.hpp"

#include "analyze/derived/processes.hpp"
#include "trace/read/handles.hpp"

namespace cudabpf::analyze {

Captures::Captures(Names& names)
    : begin_(names.add("cuStreamBeginCapture")),
      begin_to_graph_(names.add("cuStreamBeginCaptureToGraph")),
      end_(names.add("cuStreamEndCapture")) {}

void Captures::follow(Line& line) {
  erase_emptied(line, streams_, [](const auto& stream) { return stream.first.process; });
  erase_emptied(line, events_, [](const auto& event) { return event.first.first; });
  if (line.kind != LineKind::call) return;
  line.recorded = line.captured || joins(line);
  if (line.recorded && gives_work(line.work)) line.work = Work::recorded;
}

bool Captures::joins(const Line& line) {
  if (line.op == Op::stream_capture) {
    if (line.name == begin_ || line.name == begin_to_graph_)
      begin(line);
    else if (line.name == end_)
      end(line);
    return false;
  }
  if (streams_.empty() || !line.process) return false;
  EventEffect event_effect = line.meaning->event;
  bool waits_for_event = event_effect == EventEffect::wait;
  bool about_event = event_effect == EventEffect::record || event_effect == EventEffect::destroy;
  if (!line.has(Field::stream) && !about_event) return false;
  auto captured = streams_.find(stream_of(line));
  bool joined = line.has(Field::stream) && captured != streams_.end();
  if ((!about_event && !waits_for_event) || line.failed()) return joined;
  Event event(line.process->number, handle_in(line.args, "hEvent"));
  if (waits_for_event) {
    auto recorded = events_.find(event);
    if (recorded == events_.end() || joined || streams_.size() >= MOST) return joined;
    streams_[stream_of(line)] = recorded->second;
    return true;
  }
  if (joined && (events_.size() < MOST || events_.contains(event))) {
    events_[event] = captured->second;
  } else {
    events_.erase(event);
  }
  return joined;
}

void Captures::begin(const Line& call) {
  end(call);
  if (!call.failed() && streams_.size() < MOST) streams_[stream_of(call)] = ++captures_;
}

// Ending a capture ends it even if the call says that the capture had failed, and ends it for every
// stream that had joined it.
void Captures::end(const Line& call) {
  auto at = streams_.find(stream_of(call));
  if (at == streams_.end()) return;
  std::uint64_t capture = at->second;
  std::erase_if(streams_, [=](const auto& stream) { return stream.second == capture; });
  std::erase_if(events_, [=](const auto& event) { return event.second == capture; });
}

}  // namespace cudabpf::analyze
