#include "analyze/timeline/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "analyze/circumstances/processes.hpp"
#include "analyze/work.hpp"

namespace cudabpf::analyze {

namespace {

// Several types share a category, or a picture would have too many colours.
constexpr std::pair<std::string_view, Category> CATEGORY_OF_TYPE[] = {
    {"init", Category::init},     {"context", Category::context},   {"module", Category::module},
    {"memory", Category::memory}, {"transfer", Category::transfer}, {"kernel", Category::kernel},
    {"graph", Category::graph},   {"sync", Category::sync},
};

}  // namespace

void Timeline::Busy::merge(const Busy& next) {
  for (std::size_t i = 0; i < CATEGORIES; i++) time[i] += next.time[i];
  calls += next.calls;
  launches += next.launches;
  ioctls += next.ioctls;
}

std::uint64_t Timeline::Busy::total() const {
  return std::accumulate(time.begin(), time.end(), std::uint64_t{0});
}

Category Timeline::Busy::most() const {
  return static_cast<Category>(std::max_element(time.begin(), time.end()) - time.begin());
}

Timeline::Timeline(Names& names, Window window, bool with_bars)
    : names_(names),
      window_(window),
      with_bars_(with_bars),
      kernels_(names),
      ioctl_(names.add("ioctl")),
      exit_(names.add("exit")) {
  for (auto [type, category] : CATEGORY_OF_TYPE) {
    Name name = names.add(type);
    if (name.id >= categories_.size()) categories_.resize(name.id + 1, Category::other);
    categories_[name.id] = category;
  }
}

void Timeline::line(const Line& line) {
  switch (line.kind) {
    case LineKind::call:
      kernels_.line(line);
      call(line);
      break;
    case LineKind::driver:
      driver(line);
      break;
    default:
      break;
  }
  process(line);
  if (line.kind != LineKind::end) last_seen_ = std::max(last_seen_, line.end());
}

void Timeline::finish(const TraceFacts& facts) {
  duration_ = facts.duration();
  kernels_.finish();
  window_.to = std::max(std::min(window_.to, duration_), window_.from + 1);
  while (bars_.more_than_drawn()) bars_.merge(threads_);
}

// Clips to the window, as times since its beginning; false: it lies outside. The end is never
// before the beginning, whatever a trace says.
bool Timeline::clip(std::uint64_t& begin, std::uint64_t& end) const {
  end = std::max(begin, end);
  if (begin >= window_.to || end < window_.from || (end == window_.from && begin < end))
    return false;
  begin = std::max(begin, window_.from) - window_.from;
  end = std::min(end, window_.to) - window_.from;
  return true;
}

void Timeline::call(const Line& line) {
  Category category = category_of(line);
  // An unfinished call's line comes where its thread, its process or the trace ended.
  std::uint64_t begin = line.ts, end = line.unfinished ? last_seen_ : line.end();
  if (!clip(begin, end)) return;
  keep_piece(line, category, begin, end);
  Thread* thread = thread_of(line);
  if (!thread) return;
  bool nested = !is_counted(line);
  bool launch =
      !nested && line.op == Op::launch && (line.type == Type::kernel || line.type == Type::graph);
  if (!nested) {
    auto& all = thread->all.time[static_cast<std::size_t>(category)];
    all += end - begin;
    thread->buckets.spread(begin, end, [&](Busy& bucket, std::uint64_t ns) {
      bucket.time[static_cast<std::size_t>(category)] += ns;
    });
    if (thread->last && begin > thread->last_end && begin - thread->last_end > thread->gap.time)
      thread->gap = {thread->last_end, begin - thread->last_end, thread->last, line.name};
    if (end >= thread->last_end) {
      thread->last_end = end;
      thread->last = line.name;
    }
  }
  Busy& bucket = thread->buckets.at(begin);
  // A call without a duration is shown, but takes no known time.
  if (begin == end) bucket.time[static_cast<std::size_t>(category)]++;
  bucket.calls++;
  bucket.launches += launch;
  thread->all.calls++;
  thread->all.launches += launch;
  if (line.has(Field::stream) && !nested)
    if (Stream* stream = stream_of(line)) {
      stream->enqueued++;
      stream->buckets.at(begin).count++;
    }
  if (!with_bars_) return;
  bars_.add(thread->bars, nested ? TimelineBars::nested : TimelineBars::calls,
            {begin, end, 1, end - begin, line.name, line.kernel, category});
  if (bars_.too_many()) bars_.merge(threads_);
}

void Timeline::driver(const Line& line) {
  std::uint64_t begin = line.ts, end = line.unfinished ? last_seen_ : line.end();
  if (!clip(begin, end)) return;
  keep_piece(line, Category::driver, begin, end);
  Thread* thread = thread_of(line);
  if (!thread) return;
  if (line.op == ioctl_) {
    thread->all.ioctls++;
    thread->buckets.at(begin).ioctls++;
  }
  if (!with_bars_) return;
  bars_.add(thread->bars, TimelineBars::driver,
            {begin, end, 1, end - begin, line.name, line.control ? line.control : line.object_class,
             Category::driver});
  if (bars_.too_many()) bars_.merge(threads_);
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

void Timeline::keep_piece(const Line& line, Category category, std::uint64_t begin,
                          std::uint64_t end) {
  if (many_) return;
  if (pieces_.size() == FEW) {
    many_ = true;
    pieces_.clear();
    return;
  }
  bool is_call = line.kind == LineKind::call;
  Name what = line.kernel ? line.kernel : line.control ? line.control : line.object_class;
  pieces_.push_back({line.pid, line.tid, begin, end, line.duration, is_call ? line.id : 0,
                     is_call ? line.parent : line.call, category, line.name, what,
                     line.unfinished || line.has(Field::duration), static_cast<bool>(line.kernel)});
}

std::string Timeline::what_of(const Piece& piece) const {
  return piece.is_of_kernel ? kernels_.of(piece.what) : std::string(names_.text(piece.what));
}

Category Timeline::category_of(const Line& line) {
  if (line.unfinished) return Category::unfinished;
  return line.type.id < categories_.size() ? categories_[line.type.id] : Category::other;
}

Timeline::Process& Timeline::process_of(const Line& line) {
  auto [at, is_new] = process_by_number_.try_emplace(line.process->number, processes_.size());
  if (is_new) processes_.push_back({line.pid, line.process->comm, {}, {}});
  return processes_[at->second];
}

Timeline::Thread* Timeline::thread_of(const Line& line) {
  Key key{line.process->number, line.tid};
  if (last_thread_ && key == last_key_) return last_thread_;
  auto at = thread_by_key_.find(key);
  if (at == thread_by_key_.end()) {
    if (threads_.size() == MAX_THREADS) {
      left_out_of_threads_++;
      return nullptr;
    }
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

// A bucket goes to the column that its middle lies in.
template <typename Bucket>
std::vector<Bucket> Timeline::columns_of(const TimeBuckets<Bucket>& buckets,
                                         std::size_t count) const {
  std::vector<Bucket> columns(count);
  auto span = static_cast<double>(window_.to - window_.from);
  for (std::size_t i = 0; i < buckets.size(); i++) {
    auto middle =
        static_cast<double>(buckets.begin_of(i)) + static_cast<double>(buckets.width()) / 2;
    auto column = static_cast<std::size_t>(middle / span * static_cast<double>(count));
    columns[std::min(column, count - 1)].merge(buckets[i]);
  }
  return columns;
}

std::vector<Timeline::Busy> Timeline::columns(const Thread& thread, std::size_t count) const {
  return columns_of(thread.buckets, count);
}

std::vector<std::uint64_t> Timeline::columns(const Stream& stream, std::size_t count) const {
  std::vector<std::uint64_t> counts;
  for (const Enqueued& column : columns_of(stream.buckets, count)) counts.push_back(column.count);
  return counts;
}

}  // namespace cudabpf::analyze
