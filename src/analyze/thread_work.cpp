#include "analyze/thread_work.hpp"

#include <algorithm>
#include <limits>

namespace cudabpf::analyze {

Spent Spent::operator-(const Spent& before) const {
  return {calls - before.calls,     module - before.module,   to_device - before.to_device,
          to_host - before.to_host, waiting - before.waiting, launching - before.launching};
}

ThreadsAtWork::Open& ThreadsAtWork::thread(const Line& line) {
  std::pair key(line.pid, line.tid);
  if (last_ && key == last_key_) return *last_;
  auto [at, is_new] = open_.try_emplace(key);
  last_key_ = key;
  last_ = &at->second;
  if (is_new) {
    ThreadWork& work = last_->work;
    work.pid = line.pid;
    work.tid = line.tid;
    work.first_call = line.ts;
    if (auto known = known_.find(line.pid); known != known_.end()) {
      work.process_began = known->second.began;
      work.comm = known->second.comm;
    }
    last_->keeps_launches = sequences_++ < MAX_SEQUENCES;
  }
  return *last_;
}

void ThreadsAtWork::line(const Line& line) {
  if (line.kind == LineKind::process) return process(line);
  if (line.kind != LineKind::call) return;
  Open& open = thread(line);
  ThreadWork& work = open.work;
  work.first_call = std::min(work.first_call, line.ts);
  work.last_end = std::max(work.last_end, line.end());
  if (line.has(Field::parent)) return;  // its time is in the other's
  Work kind = work_of_(line);
  if (!work.set_up && kind != Work::setup && kind != Work::other) {
    work.set_up = line.ts;
    work.at_set_up = work.all;
  }
  Segment& segment = open.segment;
  if (!open.in_segment) {
    open.in_segment = true;
    segment = {};
    segment.begin = line.ts;
    segment.before = work.all;
  }
  segment.end = std::max(segment.end, line.end());
  Spent& all = work.all;
  all.calls++;
  switch (kind) {
    case Work::module:
      all.module += line.duration;
      break;
    case Work::to_device:
      all.to_device += line.duration;
      segment.largest_to_device = std::max(segment.largest_to_device, line.size);
      if (line.size >= LARGE) segment.last_large_to_device = line.end();
      break;
    case Work::to_host:
      all.to_host += line.duration;
      break;
    case Work::wait:
      all.waiting += line.duration;
      break;
    case Work::launch:
      all.launching += line.duration;
      work.launches++;
      if (!segment.launches++) {
        segment.first = line.kernel;
        segment.first_launch = line.ts;
      }
      segment.last = line.kernel;
      if (!open.keeps_launches) break;
      if (open.launches.size() == 2 * MAX_LAUNCHES)
        open.launches.erase(open.launches.begin(), open.launches.begin() + MAX_LAUNCHES);
      open.launches.push_back({line.ts, line.kernel});
      break;
    default:
      break;
  }
  if (waits(kind, line)) close_segment(open);
}

void ThreadsAtWork::close_segment(Open& open) {
  if (!open.in_segment) return;
  open.in_segment = false;
  ThreadWork& work = open.work;
  const Segment& segment = open.segment;
  if (!segment.launches && !segment.largest_to_device) return;  // another wait, for nothing new
  if (segments_ == MAX_SEGMENTS) {
    work.segments_left_out = true;
  } else {
    segments_++;
    if (open.launches.size() > work.longest.size()) {
      work.longest.swap(open.launches);
      work.longest_segment = work.segments.size();
    }
    work.segments.push_back(segment);
  }
  open.launches.clear();
}

void ThreadsAtWork::process(const Line& line) {
  if (line.op == exit_) {
    for (auto at = open_.lower_bound({line.pid, 0});
         at != open_.end() && at->first.first == line.pid; at = open_.erase(at))
      close(at->second, line.ts);
    known_.erase(line.pid);
    last_ = nullptr;
  } else {
    Known& known = known_.try_emplace(line.pid, Known{line.ts, {}}).first->second;
    if (line.op == fork_) known.began = line.ts;  // the pid's former process did not end in sight
    known.comm = line.comm;
  }
}

void ThreadsAtWork::close(Open& open, std::uint64_t process_ended) {
  close_segment(open);
  open.work.process_ended = process_ended;
  done_.push_back(std::move(open.work));
}

void ThreadsAtWork::finish(const TraceFacts&) {
  for (auto& [key, open] : open_) close(open, 0);
  open_.clear();
  last_ = nullptr;
  std::sort(done_.begin(), done_.end(), [](const ThreadWork& a, const ThreadWork& b) {
    return std::pair(a.launches, a.all.calls) > std::pair(b.launches, b.all.calls);
  });
}

}  // namespace cudabpf::analyze
