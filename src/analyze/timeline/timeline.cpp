#include "analyze/timeline/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "analyze/circumstances/graph_contents.hpp"
#include "analyze/circumstances/processes.hpp"
#include "analyze/gpu_samples.hpp"
#include "analyze/work.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf::analyze {

namespace {

bool is_launch(const Line& line) { return line.work == Work::launch; }

}  // namespace

std::uint64_t Timeline::Busy::total() const {
  return std::accumulate(time.begin(), time.end(), std::uint64_t{0});
}

Category Timeline::Busy::most() const {
  return static_cast<Category>(std::max_element(time.begin(), time.end()) - time.begin());
}

Timeline::Timeline(Names& names, std::optional<Window> window, std::uint64_t recorded_from)
    : names_(names),
      course_(names, {}, 0),
      window_(window.value_or(Window{})),
      exact_(window.has_value()),
      categories_(names),
      ioctl_(names.add("ioctl")),
      exit_(names.add("exit")),
      short_names_(names) {
  window_.from = std::max(window_.from, recorded_from);
}

void Timeline::line(const Line& line) {
  course_.line(line);
  short_names_.line(line);
  switch (line.kind) {
    case LineKind::call:
      call(line);
      break;
    case LineKind::driver:
      driver(line);
      break;
    case LineKind::gpu_sample:
      gpu_sample(sample_in(line));
      break;
    case LineKind::gpu_work:
      gpu_work(line);
      break;
    default:
      break;
  }
  process(line);
  // A GPU may have worked longer than a call that did not return.
  bool counts = line.kind != LineKind::end && line.kind != LineKind::gpu_work;
  if (counts) last_seen_ = std::max(last_seen_, line.end());
}

void Timeline::finish(const TraceFacts& facts) {
  course_.finish(facts);
  duration_ = facts.duration();
  window_.to = std::max(std::min(window_.to, duration_), window_.from + 1);
  each_row(sort_bars);
  sort_works();
  for (GpuQueue& queue : gpu_queues_) sum_up(queue);
  short_names_.settle();
}

// What of it lies in the window, if any does.
std::optional<TimeSpan> Timeline::clipped(const TimeSpan& span) const {
  auto [begin, end] = span;
  if (begin >= window_.to || end < window_.from || (end == window_.from && begin < end)) return {};
  return TimeSpan{std::max(begin, window_.from), std::min(end, window_.to)};
}

// The end is never before the beginning, whatever a trace says. An unfinished call's line comes
// where its thread, its process or the trace ended.
TimeSpan Timeline::span_of(const Line& line) const {
  return {line.ts, std::max(line.ts, line.unfinished ? last_seen_ : line.end())};
}

void Timeline::gpu_sample(const GpuSample& sample) {
  if (!sample.sm_active) return;
  if (gpus_.size() < MAX_GPUS || gpus_.contains(sample.device)) gpus_[sample.device].add(sample);
}

void Timeline::call(const Line& line) {
  TimeSpan span = span_of(line);
  auto here = clipped(span);
  if (!here) return;
  Category category = categories_.of(line);
  bool nested = !is_counted(line), timed = line.unfinished || line.has(Field::duration);
  Thread* thread = thread_of(line);
  if (thread && line.unfinished && !nested) {
    span.end = end_before_next(thread->bars[CALLS], span);
    here = clipped(span);
    if (!here) return;
  }
  keep_piece(line, category, *here);
  Alike one{line.name, launched_by(line), category, 1, !nested && is_launch(line),
            !timed,    span.time()};
  if (!thread) {
    left_out_of_threads_++;
    add(more_calls_, {span, one}, false);
    return;
  }
  BarRow& row = thread->bars[nested ? NESTED : CALLS];
  count(*thread, line, category, *here);
  add(row, {span, one}, nested);
  bool enqueues = line.has(Field::stream) && category != Category::captured;
  if (!enqueues || nested || span.begin < window_.from) return;
  if (Stream* stream = stream_of(line)) {
    stream->enqueued++;
    one.time = 0;
    add(stream->bars, {{span.begin, span.begin}, one}, false);
  }
}

// A thread that did something else was no longer in a call that did not return.
std::uint64_t Timeline::end_before_next(const BarRow& row, const TimeSpan& call) {
  auto next = std::upper_bound(row.begin(), row.end(), call.begin,
                               [](std::uint64_t ns, const Bar& bar) { return ns < bar.begin; });
  return next == row.end() ? call.end : std::min(call.end, next->begin);
}

void Timeline::count(Thread& thread, const Line& line, Category category, const TimeSpan& here) {
  thread.all.calls++;
  if (!is_counted(line)) return;
  thread.all.launches += is_launch(line);
  thread.all.time[static_cast<std::size_t>(category)] += here.time();
  std::uint64_t since = here.begin > thread.last_end ? here.begin - thread.last_end : 0;
  if (thread.last && since > thread.gap.time)
    thread.gap = {thread.last_end, since, thread.last, line.name};
  if (here.end >= thread.last_end) {
    thread.last_end = here.end;
    thread.last = line.name;
  }
}

void Timeline::driver(const Line& line) {
  TimeSpan span = span_of(line);
  auto here = clipped(span);
  if (!here) return;
  Thread* thread = thread_of(line);
  if (thread && line.unfinished) {
    span.end = end_before_next(thread->bars[DRIVER], span);
    here = clipped(span);
    if (!here) return;
  }
  keep_piece(line, Category::driver, *here);
  if (!thread) return;
  bool ioctl = line.op == ioctl_;
  thread->all.ioctls += ioctl;
  Name what = line.control ? line.control : line.object_class;
  add(thread->bars[DRIVER],
      {span,
       {line.name, what, Category::driver, 1, ioctl, !line.has(Field::duration), span.time()}},
      true);
}

void Timeline::add(BarRow& row, Bar bar, bool around) {
  if (around)
    bars_.add_around(row, std::move(bar));
  else
    bars_.add(row, std::move(bar));
  if (bars_.too_many()) bars_.merge([&](auto&& each) { each_row(each); });
}

template <typename Each>
void Timeline::each_row(Each&& each) {
  for (Thread& thread : threads_)
    for (BarRow& row : thread.bars) each(row);
  for (Stream& stream : streams_) each(stream.bars);
  for (GpuQueue& queue : gpu_queues_) each(queue.bars);
  each(more_calls_);
}

void Timeline::process(const Line& line) {
  if (!line.gone.empty()) last_thread_ = nullptr;
  for (const analyze::Process* gone : line.gone) {
    auto of_process = [=](const auto& entry) { return entry.first.process == gone->number; };
    std::erase_if(thread_by_key_, of_process);
    std::erase_if(stream_by_key_, of_process);
    process_by_number_.erase(gone->number);
  }
  if (line.kind != LineKind::process || line.op == exit_ || !line.comm) return;
  auto known = process_by_number_.find(line.process->number);
  if (known != process_by_number_.end()) processes_[known->second].comm = line.comm;
}

void Timeline::keep_piece(const Line& line, Category category, const TimeSpan& here) {
  if (many_) return;
  if (pieces_.size() == FEW) {
    many_ = true;
    pieces_.clear();
    return;
  }
  bool is_call = line.kind == LineKind::call;
  Name launched = is_call ? launched_by(line) : Name();
  Name what = launched ? launched : line.control ? line.control : line.object_class;
  pieces_.push_back({line.process->number, line.tid, here.begin, here.end, line.duration,
                     is_call ? line.id : 0, is_call ? line.parent : line.call, category, line.name,
                     what, is_call && is_launch(line), line.unfinished || line.has(Field::duration),
                     static_cast<bool>(launched)});
}

// The kernel or the graph, if it is known.
Name Timeline::launched_by(const Line& line) {
  if (line.kernel || !line.content) return line.kernel;
  Name& name = graphs_[line.content];
  if (!name) {
    name = names_.add(fmt::format("graph {}, {}", line.content->number,
                                  count_of(line.content->kernels, "kernel", "kernels")));
    graph_names_.insert(name.id);
  }
  return name;
}

std::string Timeline::short_name(Name what) const {
  return graph_names_.contains(what.id) ? std::string(names_.text(what)) : short_names_.of(what);
}

std::string Timeline::what_of(const Piece& piece) const {
  return piece.is_launched ? short_name(piece.what) : std::string(names_.text(piece.what));
}

Timeline::Process& Timeline::process_of(const Line& line) {
  auto [at, is_new] = process_by_number_.try_emplace(line.process->number, processes_.size());
  if (!is_new) return processes_[at->second];
  auto [of_pid, is_first] = process_by_pid_.try_emplace(line.pid, at->second);
  if (!is_first && !processes_[of_pid->second].number) {  // what its GPUs did came before
    at->second = of_pid->second;
    processes_[at->second].number = line.process->number;
    processes_[at->second].comm = line.process->comm;
  } else {
    of_pid->second = at->second;
    processes_.push_back({line.process->number, line.pid, line.process->comm, {}, {}, {}});
  }
  return processes_[at->second];
}

Timeline::Thread* Timeline::thread_of(const Line& line) {
  Key key{line.process->number, line.tid};
  if (last_thread_ && key == last_key_) return last_thread_;
  auto at = thread_by_key_.find(key);
  if (at == thread_by_key_.end()) {
    if (threads_.size() == MAX_THREADS) return nullptr;
    process_of(line).threads.push_back(threads_.size());
    at = thread_by_key_.emplace(key, threads_.size()).first;
    threads_.emplace_back().tid = line.tid;
  }
  last_key_ = key;
  return last_thread_ = &threads_[at->second];
}

// The default streams of all contexts count as one.
Timeline::Stream* Timeline::stream_of(const Line& line) {
  StreamKey key = analyze::stream_of(line);
  key.context = 0;
  auto at = stream_by_key_.find(key);
  if (at == stream_by_key_.end()) {
    if (streams_.size() == MAX_STREAMS) {
      left_out_of_streams_++;
      return nullptr;
    }
    process_of(line).streams.push_back(streams_.size());
    at = stream_by_key_.emplace(key, streams_.size()).first;
    streams_.push_back({key.handle, key.tid, 0, {}});
  }
  return &streams_[at->second];
}

std::string name_of(const Timeline::Stream& stream) {
  return stream.tid ? fmt::format("stream {:#x}, {}", stream.handle, stream.tid)
                    : fmt::format("stream {:#x}", stream.handle);
}

}  // namespace cudabpf::analyze
