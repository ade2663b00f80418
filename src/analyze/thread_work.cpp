#include "analyze/thread_work.hpp"

#include <algorithm>
#include <limits>

namespace cudabpf::analyze {

// A line whose call was given up late tells of a moment that others have passed.
Spent Spent::operator-(const Spent& before) const {
  auto less = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
  return {less(calls, before.calls),     less(in_calls, before.in_calls),
          less(module, before.module),   less(to_device, before.to_device),
          less(to_host, before.to_host), less(waiting, before.waiting)};
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
  if (!work.set_up.ts && kind != Work::setup && kind != Work::other)
    work.set_up = {line.ts, work.all};
  open.segment.end.ts = std::max(open.segment.end.ts, line.end());
  if (kind == Work::launch) launched(line, open);
  Spent& all = work.all;
  all.calls++;
  all.in_calls += line.duration;
  switch (kind) {
    case Work::module:
      all.module += line.duration;
      break;
    case Work::to_device:
      all.to_device += line.duration;
      if (line.size >= LARGE && line.has(Field::duration)) copied(line, open);
      break;
    case Work::to_host:
      all.to_host += line.duration;
      break;
    case Work::wait:
      all.waiting += line.duration;
      break;
    default:
      break;
  }
  if (waits(kind, line)) close_segment(open);
}

void ThreadsAtWork::copied(const Line& line, Open& open) {
  auto& copies = open.work.large_copies;
  Moment now{line.end(), open.work.all};
  if (open.copied_since_launch)
    copies.back() = now;
  else if (copies.size() < MAX_COPIES)
    copies.push_back(now);
  open.copied_since_launch = !copies.empty() && copies.back().ts == now.ts;
}

void ThreadsAtWork::launched(const Line& line, Open& open) {
  Segment& segment = open.segment;
  if (!open.work.launches++) open.keeps_launches = sequences_ < MAX_SEQUENCES && ++sequences_;
  open.copied_since_launch = false;
  if (!segment.launches++) {
    segment.first = line.kernel;
    segment.begin = {line.ts, open.work.all};
  }
  segment.last = line.kernel;
  if (!open.keeps_launches) return;
  if (open.launches.size() == 2 * MAX_LAUNCHES)
    open.launches.erase(open.launches.begin(), open.launches.begin() + MAX_LAUNCHES);
  open.launches.push_back({{line.ts, open.work.all}, line.kernel});
}

void ThreadsAtWork::close_segment(Open& open) {
  Segment segment = open.segment;
  open.segment = {};
  if (!segment.launches) return;
  segment.end.spent = open.work.all;
  ThreadWork& work = open.work;
  if (segments_ == MAX_SEGMENTS) {
    work.segments_left_out = true;
  } else {
    segments_++;
    if (segment.launches > work.longest_launches) {
      work.longest.swap(open.launches);
      work.longest_launches = segment.launches;
      work.longest_segment = work.segments.size();
    }
    work.segments.push_back(segment);
  }
  open.launches.clear();
}

void ThreadsAtWork::process(const Line& line) {
  if (line.op == exit_ || line.op == fork_) {  // of one whose exit was not seen, then
    for (auto at = open_.lower_bound({line.pid, 0});
         at != open_.end() && at->first.first == line.pid; at = open_.erase(at))
      close(at->second, line.ts);
    known_.erase(line.pid);
    last_ = nullptr;
  }
  if (line.op != exit_)
    known_.try_emplace(line.pid, Known{line.ts, {}}).first->second.comm = line.comm;
}

void ThreadsAtWork::close(Open& open, std::uint64_t process_ended) {
  close_segment(open);
  open.work.process_ended = process_ended;
  sequences_ -= open.keeps_launches;
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
