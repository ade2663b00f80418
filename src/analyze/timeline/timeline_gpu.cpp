// The timeline's rows of what GPUs did.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "analyze/timeline/timeline.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

namespace {

auto place_of(const QueuedWork& work) {
  return std::tuple(work.queue, work.span.begin, work.span.end);
}

}  // namespace

Category category_of_work(const Line& work) {
  if (work.op == Type::kernel) return Category::kernel;
  if (work.op == Type::graph) return Category::graph;
  return work.op == Op::set ? Category::memory : Category::transfer;
}

void Timeline::gpu_work(const Line& line) {
  TimeSpan span{line.ts, line.end()};
  auto here = clipped(span);
  if (!here) return;
  std::size_t index = gpu_queue_of(line);
  if (index == MAX_QUEUES) {
    left_out_of_queues_++;
    return;
  }
  GpuQueue& queue = gpu_queues_[index];
  queue.works++;
  keep_work(index, span, line);
  Name what = line.kernel ? line.kernel : line.direction;
  if (line.op == Type::graph && line.issuer && line.issuer->graph)
    what = name_of_graph(line.issuer->graph);
  add(queue.bars,
      {span,
       {line.op, what, category_of_work(line), 1, 0, !line.has(Field::duration), span.time()}},
      false);
}

// Launched by so many different graphs, they have names.
Name Timeline::name_of_graph(std::uint64_t number) {
  constexpr std::size_t MOST = 1 << 12;
  if (!names_of_graphs_.contains(number) && names_of_graphs_.size() == MOST) return {};
  Name& name = names_of_graphs_[number];
  if (!name) graph_names_.insert((name = names_.add(fmt::format("graph {}", number))).id);
  return name;
}

void Timeline::keep_work(std::size_t queue, const TimeSpan& span, const Line& line) {
  if (many_works_) return;
  if (gpu_works_.size() == MOST_WORKS) {
    many_works_ = true;
    gpu_works_ = {};
    return;
  }
  QueuedWork& work = gpu_works_.emplace_back(QueuedWork{queue, span, line, {}});
  if (line.issuer) work.issuer = *line.issuer;
  work.line.text = work.line.args = {};
  work.line.issuer = nullptr;
}

// Its process may have called nothing that the trace has, or be gone already.
std::size_t Timeline::gpu_queue_of(const Line& line) {
  auto known = process_by_pid_.find(line.pid);
  if (known == process_by_pid_.end()) {
    if (gpu_queues_.size() == MAX_QUEUES) return MAX_QUEUES;
    known = process_by_pid_.emplace(line.pid, processes_.size()).first;
    processes_.push_back({0, line.pid, {}, {}, {}, {}});
  }
  Process& process = processes_[known->second];
  QueueKey key = queue_of(line);
  for (std::size_t queue : process.queues)
    if (gpu_queues_[queue].key == key) {
      if (gpu_queues_[queue].handle.empty()) gpu_queues_[queue].handle = handle_name(line);
      return queue;
    }
  if (gpu_queues_.size() == MAX_QUEUES) return MAX_QUEUES;
  process.queues.push_back(gpu_queues_.size());
  gpu_queues_.push_back({known->second, key, handle_name(line), 0, 0, {}});
  return gpu_queues_.size() - 1;
}

void Timeline::sum_up(GpuQueue& queue) const {
  queue.each_time([&](const Bar&, const TimeSpan& where, std::uint64_t time) {
    if (auto here = clipped(where)) queue.time += std::min(time, here->time());
  });
}

void Timeline::sort_works() {
  std::stable_sort(
      gpu_works_.begin(), gpu_works_.end(),
      [](const QueuedWork& a, const QueuedWork& b) { return a.span.begin < b.span.begin; });
  HashSet<std::uint64_t> calls;
  for (QueuedWork& work : gpu_works_)
    work.is_first = work.issuer && calls.insert(work.issuer->id).second;
  std::stable_sort(
      gpu_works_.begin(), gpu_works_.end(),
      [](const QueuedWork& a, const QueuedWork& b) { return place_of(a) < place_of(b); });
  for (Process& process : processes_)
    std::sort(process.queues.begin(), process.queues.end(), [&](std::size_t a, std::size_t b) {
      return gpu_queues_[a].key < gpu_queues_[b].key;
    });
}

const QueuedWork* Timeline::work_at(std::size_t queue, const TimeSpan& span) const {
  auto place = std::tuple(queue, span.begin, span.end);
  auto at = std::partition_point(gpu_works_.begin(), gpu_works_.end(),
                                 [&](const QueuedWork& one) { return place_of(one) < place; });
  return at != gpu_works_.end() && place_of(*at) == place ? &*at : nullptr;
}

std::string Timeline::name_of(const QueuedWork& work) const {
  return work.line.kernel ? short_name(work.line.kernel) : work_name(work.line, names_);
}

std::string full_name(const GpuQueue& queue) {
  return fmt::format("{} {}", gpu_name(queue.key), stream_name(queue.key, queue.handle));
}

std::string short_name(const GpuQueue& queue) {
  std::string number = stream_number(queue.key);
  return gpu_name(queue.key) + (number.empty() ? "" : " " + number);
}

}  // namespace cudabpf::analyze
