// The timeline's rows of what GPUs did.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "analyze/timeline/timeline.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

namespace {

auto place_of(const QueuedOperation& work) {
  return std::tuple(work.queue, work.span.begin, work.span.end);
}

}  // namespace

void Timeline::gpu_operation(const Line& line) {
  TimeSpan span{line.ts, line.end()};
  auto here = clipped(span);
  if (!here) return;
  Queue* queue = owners_.queue_of(line);
  if (!queue) {
    left_out_of_queues_++;
    return;
  }
  queue->operations++;
  keep_work(static_cast<std::size_t>(queue - owners_.queues().data()), span, line);
  LaneEvent event = events_.of(line);
  if (line.op == Type::graph && line.issuer && line.issuer->graph)
    event.what = events_.name_of_graph(line.issuer->graph);
  add(queue->bars,
      {span, {event.name, event.what, event.category, 1, 0, !event.timed, span.time()}});
}

void Timeline::keep_work(std::size_t queue, const TimeSpan& span, const Line& line) {
  if (many_operations_) return;
  if (gpu_operations_.size() == MAX_OPERATIONS) {
    many_operations_ = true;
    gpu_operations_ = {};
    return;
  }
  QueuedOperation& work = gpu_operations_.emplace_back(QueuedOperation{queue, span, line, {}});
  if (line.issuer) work.issuer = *line.issuer;
  work.line.text = work.line.args = {};
  work.line.issuer = nullptr;
}

void Timeline::sum_up(QueueBars& queue) const {
  queue.each_time([&](const Bar&, const TimeSpan& where, std::uint64_t time) {
    if (auto here = clipped(where)) queue.time += std::min(time, here->time());
  });
}

void Timeline::sort_operations() {
  std::stable_sort(gpu_operations_.begin(), gpu_operations_.end(),
                   [](const QueuedOperation& a, const QueuedOperation& b) {
                     return a.span.begin < b.span.begin;
                   });
  HashSet<std::uint64_t> calls;
  for (QueuedOperation& work : gpu_operations_)
    work.is_first = work.issuer && calls.insert(work.issuer->id).second;
  std::stable_sort(
      gpu_operations_.begin(), gpu_operations_.end(),
      [](const QueuedOperation& a, const QueuedOperation& b) { return place_of(a) < place_of(b); });
}

const QueuedOperation* Timeline::work_at(std::size_t queue, const TimeSpan& span) const {
  auto place = std::tuple(queue, span.begin, span.end);
  auto at = std::partition_point(gpu_operations_.begin(), gpu_operations_.end(),
                                 [&](const QueuedOperation& one) { return place_of(one) < place; });
  return at != gpu_operations_.end() && place_of(*at) == place ? &*at : nullptr;
}

std::string Timeline::name_of(const QueuedOperation& work) const {
  return work.line.kernel ? short_name(work.line.kernel) : work_name(work.line, names());
}

std::string full_name(const Timeline::Queue& queue) {
  return fmt::format("{} {}", gpu_name(queue.key), stream_name(queue.key, queue.handle));
}

std::string short_name(const Timeline::Queue& queue) {
  std::string number = stream_number(queue.key);
  return gpu_name(queue.key) + (number.empty() ? "" : " " + number);
}

}  // namespace cudabpf::analyze
