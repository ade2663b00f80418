#include "analyze/report/report_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/circumstances/graph_contents.hpp"
#include "analyze/circumstances/processes.hpp"
#include "analyze/gpu_samples.hpp"
#include "analyze/timeline/gpu_work.hpp"
#include "analyze/work.hpp"
#include "util/console/terminal.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {

// A call that did not return lasts until its thread does something else.
void end_before_next(ReportLane& lane, const std::vector<EventKind>& kinds) {
  lane.sort();
  auto& events = lane.events();
  for (std::size_t i = 0; i + 1 < events.size(); i++) {
    if (kinds[events[i].kind].category != Category::unfinished || events[i].count > 1) continue;
    events[i].end = std::min(events[i].end, events[i + 1].begin);
    events[i].busy = events[i].longest = events[i].time();
  }
}

}  // namespace

void ReportTimeline::Activity::merge(const Activity& next) {
  launches += next.launches;
  to_device = saturating_sum(to_device, next.to_device);
  to_host = saturating_sum(to_host, next.to_host);
  other_copies = saturating_sum(other_copies, next.other_copies);
}

void ReportTimeline::Sampled::merge(const Sampled& next) {
  active += next.active;
  watts += next.watts;
  actives += next.actives;
  powers += next.powers;
}

ReportTimeline::ReportTimeline(Names& names, std::size_t most_events)
    : names_(names),
      categories_(names),
      short_names_(names),
      ioctl_(names.add("ioctl")),
      nv_ok_(names.add("NV_OK")),
      events_(most_events) {}

void ReportTimeline::line(const Line& line) {
  short_names_.line(line);
  switch (line.kind) {
    case LineKind::call:
      call(line);
      break;
    case LineKind::driver:
      driver(line);
      break;
    case LineKind::gpu_work:
      gpu_work(line);
      break;
    case LineKind::gpu_sample:
      gpu_sample(line);
      break;
    case LineKind::header:
    case LineKind::end:
      return;
    default:
      break;
  }
  last_seen_ = std::max(last_seen_, std::min(line.end(), LATEST));
}

void ReportTimeline::finish(const TraceFacts& facts) {
  from_ = std::min(facts.part.clipped(0), LATEST);
  to_ = std::min(facts.part.clipped(facts.duration()), LATEST);
  to_ = std::max(to_, from_ + 1);
  for (Thread& thread : threads_)
    for (ReportLane* lane : {&thread.calls, &thread.nested, &thread.driver})
      end_before_next(*lane, kinds_.all());
  for (Queue& queue : queues_) queue.works.sort();
  short_names_.settle();
}

template <typename Each>
void ReportTimeline::each_lane(Each&& each) {
  for (Thread& thread : threads_)
    for (ReportLane* lane : {&thread.calls, &thread.nested, &thread.driver}) each(*lane);
  for (Queue& queue : queues_) each(queue.works);
}

void ReportTimeline::add(ReportLane& lane, const Line& line, const EventKind& kind,
                         std::uint64_t id, std::uint32_t stream) {
  if (line.ts > LATEST) {
    left_out_.too_late++;
    return;
  }
  ReportEvent event;
  event.begin = line.ts;
  event.end = std::clamp(line.unfinished ? last_seen_ : line.end(), line.ts, LATEST);
  event.id = id;
  event.busy = event.longest = event.time();
  event.kind = kinds_.add(kind);
  event.stream = stream;
  // A short one will most likely be merged, and then has none.
  if (event.time() >> events_.resolution() || !events_.resolution())
    event.details = details_.of(line, names_);
  events_.add(lane, event, [this](auto&& each) { each_lane(each); });
}

void ReportTimeline::call(const Line& line) {
  count(line);
  Thread* thread = thread_of(line);
  if (!thread) {
    left_out_.of_threads++;
    return;
  }
  EventKind kind{.name = line.name,
                 .what = launched_by(line),
                 .error = line.error,
                 .ending = line.state().empty() ? Name{} : names_.add(line.state()),
                 .category = categories_.of(line),
                 .failed = line.failed(),
                 .launch = is_counted(line) && line.work == Work::launch,
                 .ioctl = false,
                 .timed = line.has(Field::duration),
                 .is_kernel = static_cast<bool>(line.kernel)};
  std::uint32_t stream =
      line.has(Field::stream) ? stream_number(line, thread->process) : std::uint32_t{0};
  add(is_outermost(line) ? thread->calls : thread->nested, line, kind, line.id, stream);
}

void ReportTimeline::driver(const Line& line) {
  Thread* thread = thread_of(line);
  if (!thread) {
    left_out_.of_threads++;
    return;
  }
  EventKind kind{.name = line.name,
                 .what = line.control ? line.control : line.object_class,
                 .error = line.error,
                 .ending = line.state().empty() ? Name{} : names_.add(line.state()),
                 .category = line.unfinished ? Category::unfinished : Category::driver,
                 .failed = refused(line, nv_ok_),
                 .launch = false,
                 .ioctl = line.op == ioctl_,
                 .timed = line.has(Field::duration),
                 .is_kernel = false};
  add(thread->driver, line, kind, line.call, 0);
}

void ReportTimeline::gpu_work(const Line& line) {
  Queue* queue = queue_of_work(line);
  if (!queue) {
    left_out_.of_queues++;
    return;
  }
  EventKind kind{.name = line.op,
                 .what = line.kernel ? line.kernel : line.direction,
                 .error = {},
                 .ending = {},
                 .category = category_of_work(line),
                 .failed = false,
                 .launch = false,
                 .ioctl = false,
                 .timed = line.has(Field::duration),
                 .is_kernel = static_cast<bool>(line.kernel)};
  add(queue->works, line, kind, line.call, 0);
}

void ReportTimeline::count(const Line& call) {
  if (call.ts > LATEST || !is_counted(call) || call.failed()) return;
  Work work = call.work;
  if (work == Work::launch) activity_.at(call.ts).launches++;
  if (!call.has(Field::size)) return;
  if (work == Work::to_device || work == Work::to_host || work == Work::copy) {
    Activity& now = activity_.at(call.ts);
    auto& bytes = work == Work::to_device ? now.to_device
                  : work == Work::to_host ? now.to_host
                                          : now.other_copies;
    bytes = saturating_sum(bytes, call.size);
  }
}

void ReportTimeline::gpu_sample(const Line& line) {
  GpuSample sample = sample_in(line);
  if (sample.ts > LATEST || (gpus_.size() == MAX_GPUS && !gpus_.contains(sample.device))) return;
  Sampled& now = gpus_[sample.device].at(sample.ts);
  if (sample.sm_active) now.merge({*sample.sm_active, 0, 1, 0});
  if (sample.power_w) now.merge({0, *sample.power_w, 0, 1});
}

Name ReportTimeline::launched_by(const Line& line) {
  if (line.kernel || !line.content) return line.kernel;
  Name& name = graphs_[line.content];
  if (!name)
    name = names_.add(fmt::format("graph {}, {}", line.content->number,
                                  count_of(line.content->kernels, "kernel", "kernels")));
  return name;
}

// MAX_PROCESSES: there are too many.
std::size_t ReportTimeline::process_of(const Line& line) {
  std::uint64_t number = line.process ? line.process->number : 0;
  if (number) {
    auto known = process_by_number_.find(number);
    if (known != process_by_number_.end()) {
      if (line.process->comm) processes_[known->second].comm = line.process->comm;
      return known->second;
    }
  }
  auto of_pid = process_by_pid_.find(line.pid);
  // Work of a GPU has a pid alone; what it did may come before its process's first call.
  if (of_pid != process_by_pid_.end() && (!number || !processes_[of_pid->second].number)) {
    if (number) {
      processes_[of_pid->second] = {line.pid, line.process->comm, number};
      process_by_number_.emplace(number, of_pid->second);
    }
    return of_pid->second;
  }
  if (processes_.size() == MAX_PROCESSES) return MAX_PROCESSES;
  std::size_t index = processes_.size();
  processes_.push_back({line.pid, number ? line.process->comm : Name{}, number});
  process_by_pid_[line.pid] = index;
  if (number) process_by_number_.emplace(number, index);
  return index;
}

ReportTimeline::Thread* ReportTimeline::thread_of(const Line& line) {
  if (!line.process) return nullptr;
  ThreadKey key{line.process->number, line.tid};
  auto known = thread_by_key_.find(key);
  if (known != thread_by_key_.end()) return &threads_[known->second];
  std::size_t process = threads_.size() < MAX_THREADS ? process_of(line) : MAX_PROCESSES;
  if (process == MAX_PROCESSES) return nullptr;
  thread_by_key_.emplace(key, threads_.size());
  return &threads_.emplace_back(Thread{process, line.tid, {}, {}, {}});
}

ReportTimeline::Queue* ReportTimeline::queue_of_work(const Line& line) {
  std::size_t process = process_of(line);
  if (process == MAX_PROCESSES) return nullptr;
  auto [at, is_new] = queue_by_key_.try_emplace({process, queue_of(line)}, queues_.size());
  if (is_new && queues_.size() == MAX_QUEUES) {
    queue_by_key_.erase(at);
    return nullptr;
  }
  if (is_new) queues_.push_back({process, at->first.second, {}, {}});
  Queue& queue = queues_[at->second];
  if (queue.handle.empty()) queue.handle = handle_name(line);
  return &queue;
}

// 0: there are too many.
std::uint32_t ReportTimeline::stream_number(const Line& line, std::size_t process) {
  StreamKey key = analyze::stream_of(line);
  auto known = stream_by_key_.find(key);
  if (known != stream_by_key_.end()) return known->second;
  if (streams_.size() == MAX_STREAMS) return 0;
  streams_.push_back({process, key.handle, key.tid});
  return stream_by_key_[key] = static_cast<std::uint32_t>(streams_.size());
}

}  // namespace cudabpf::analyze
