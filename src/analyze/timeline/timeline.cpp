#include "analyze/timeline/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "util/limited.hpp"

namespace cudabpf::analyze {

namespace {

// A thread that did something else was no longer in a call that did not return.
std::uint64_t end_before_next(const BarRow& row, const TimeSpan& call) {
  auto next = std::upper_bound(row.begin(), row.end(), call.begin,
                               [](std::uint64_t ns, const Bar& bar) { return ns < bar.begin; });
  return next == row.end() ? call.end : std::min(call.end, next->begin);
}

}  // namespace

std::uint64_t Timeline::Busy::total() const {
  return std::accumulate(time.begin(), time.end(), std::uint64_t{0});
}

Category Timeline::Busy::most() const {
  return static_cast<Category>(std::max_element(time.begin(), time.end()) - time.begin());
}

Timeline::Timeline(Names& names, std::optional<Window> window, std::uint64_t recorded_from)
    : execution_(names, {}, 0),
      window_(window.value_or(Window{})),
      exact_(window.has_value()),
      events_(names) {
  window_.from = std::max(window_.from, recorded_from);
}

void Timeline::line(const Line& line) {
  execution_.line(line);
  events_.learn(line);
  if (line.wanted && (line.kind == LineKind::call || line.kind == LineKind::driver))
    on_thread(line);
  if (line.wanted && line.kind == LineKind::range) range(line);
  if (line.sample) gpu_sample(*line.sample);
  if (line.wanted && line.kind == LineKind::gpu_operation) gpu_operation(line);
  if (line.wanted && line.kind == LineKind::gpu_window && clipped({line.ts, line.end()}))
    owners_.window(line);
  owners_.seen(line);
}

void Timeline::finish(const TraceFacts& facts) {
  execution_.finish(facts);
  duration_ = facts.duration();
  window_.to = std::max(std::min(window_.to, duration_), window_.from + 1);
  each_row(sort_row<Bar>);
  sort_operations();
  for (Queue& queue : owners_.queues()) sum_up(queue);
  events_.settle();
}

// What of it lies in the window, if any does.
std::optional<TimeSpan> Timeline::clipped(const TimeSpan& span) const {
  auto [begin, end] = span;
  if (begin >= window_.to || end < window_.from || (end == window_.from && begin < end)) return {};
  return TimeSpan{std::max(begin, window_.from), std::min(end, window_.to)};
}

void Timeline::gpu_sample(const GpuSample& sample) {
  if (!sample.sm_active) return;
  if (has_room_for(gpus_, sample.device, MAX_GPUS)) gpus_[sample.device].add(sample);
}

void Timeline::on_thread(const Line& line) {
  TimeSpan span = owners_.span_of(line);
  auto here = clipped(span);
  if (!here) return;
  LaneRow row = row_of(line);
  LaneEvent event = events_.of(line);
  if (row == DRIVER) event.category = Category::driver;
  Thread* thread = owners_.thread_of(line);
  if (thread && line.unfinished && row != NESTED) {
    span.end = end_before_next(thread->bars[row], span);
    here = clipped(span);
    if (!here) return;
  }
  keep_piece(line, event, *here);
  bool timed = event.timed || (line.unfinished && row != DRIVER);
  Alike one{event.name, event.what, event.category, 1, event.launch || event.ioctl,
            !timed,     span.time()};
  if (!thread) {
    left_out_of_threads_ += row != DRIVER;
    if (row != DRIVER) add(more_calls_, {span, one});
    return;
  }
  thread->all.ioctls += event.ioctl;
  thread->all.calls += row != DRIVER;
  if (row == CALLS)
    add(thread->bars[row], {span, one});
  else
    add_around(thread->bars[row], {span, one});
  if (row == DRIVER || !is_counted(line)) return;
  count(*thread, line, event.category, *here);
  if (line.has(Field::stream) && event.category != Category::captured && span.begin >= window_.from)
    enqueue(line, one);
}

void Timeline::range(const Line& line) {
  TimeSpan span = owners_.span_of(line);
  if (!has_bar(line) || !clipped(span)) return;
  Thread* thread = owners_.thread_of(line);
  if (!thread) return;
  std::size_t depth = depth_of(line);
  if (thread->ranges.size() <= depth) thread->ranges.resize(depth + 1);
  Alike one;
  one.name = line.label;
  one.count = 1;
  one.time = span.time();
  add(thread->ranges[depth], {span, one});
}

void Timeline::count(OfThread& thread, const Line& line, Category category, const TimeSpan& here) {
  thread.all.launches += line.work == Work::launch;
  thread.all.time[static_cast<std::size_t>(category)] += here.time();
  std::uint64_t since = here.begin > thread.last_end ? here.begin - thread.last_end : 0;
  if (thread.last && since > thread.gap.time)
    thread.gap = {thread.last_end, since, thread.last, line.name};
  if (here.end >= thread.last_end) {
    thread.last_end = here.end;
    thread.last = line.name;
  }
}

// The default streams of all contexts count as one.
void Timeline::enqueue(const Line& line, Alike one) {
  StreamKey key = stream_of(line);
  key.context = 0;
  Stream* stream = owners_.stream_of(line, key);
  if (!stream) {
    left_out_of_streams_++;
    return;
  }
  stream->enqueued++;
  one.time = 0;
  add(stream->bars, {{line.ts, line.ts}, one});
}

void Timeline::add(BarRow& row, Bar bar) {
  bars_.add(row, std::move(bar), [this](auto&& each) { each_row(each); });
}

// Takes out what lies inside of it: lines come in the order in which calls ended.
void Timeline::add_around(BarRow& row, Bar bar) {
  auto has = [&](const Bar& other) {
    return other.begin >= bar.begin && other.end > bar.begin && other.end <= bar.end;
  };
  while (!row.empty() && has(row.back())) {
    bar.take_in(row.back());
    bars_.drop_last(row);
  }
  add(row, std::move(bar));
}

template <typename Each>
void Timeline::each_row(Each&& each) {
  for (Thread& thread : owners_.threads()) {
    for (BarRow& row : thread.bars) each(row);
    for (BarRow& row : thread.ranges) each(row);
  }
  for (Stream& stream : owners_.streams()) each(stream.bars);
  for (Queue& queue : owners_.queues()) each(queue.bars);
  each(more_calls_);
}

void Timeline::keep_piece(const Line& line, const LaneEvent& event, const TimeSpan& here) {
  if (many_) return;
  if (pieces_.size() == FEW) {
    many_ = true;
    pieces_.clear();
    return;
  }
  bool is_call = line.kind == LineKind::call;
  pieces_.push_back({line.process->number, line.tid, here.begin, here.end, line.duration,
                     is_call ? line.id : 0, is_call ? line.parent : line.call, event.category,
                     event.name, event.what, is_call && line.work == Work::launch,
                     line.unfinished || event.timed, is_call && event.what});
}

std::string Timeline::what_of(const Piece& piece) const {
  return piece.is_launched ? short_name(piece.what) : std::string(names().text(piece.what));
}

std::string name_of(const Timeline::Stream& stream) {
  return stream.tid ? fmt::format("stream {:#x}, {}", stream.handle, stream.tid)
                    : fmt::format("stream {:#x}", stream.handle);
}

}  // namespace cudabpf::analyze
