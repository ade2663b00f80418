#include "analyze/iterations/thread_work.hpp"

#include <algorithm>

#include "analyze/derived/processes.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {
constexpr std::uint64_t Spent::*EACH[] = {&Spent::recorded,  &Spent::calls,   &Spent::in_calls,
                                          &Spent::module,    &Spent::memory,  &Spent::launching,
                                          &Spent::to_device, &Spent::to_host, &Spent::waiting,
                                          &Spent::idle,      &Spent::kernels};
static_assert(sizeof EACH / sizeof *EACH == sizeof(Spent) / sizeof(std::uint64_t));
}  // namespace

void Spent::add(Work kind, std::uint64_t time) {
  in_calls += time;
  switch (kind) {
    case Work::module:
      module += time;
      break;
    case Work::memory:
      memory += time;
      break;
    case Work::launch:
      launching += time;
      break;
    case Work::to_device:
      to_device += time;
      break;
    case Work::to_host:
      to_host += time;
      break;
    case Work::wait:
      waiting += time;
      break;
    default:
      break;
  }
}

// The line of a call given up late is about a moment that other lines have already passed.
Spent Spent::operator-(const Spent& before) const {
  auto less = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
  Spent since;
  for (auto member : EACH) since.*member = less(this->*member, before.*member);
  return since;
}

Spent& Spent::operator+=(const Spent& other) {
  for (auto member : EACH) this->*member = saturating_sum(this->*member, other.*member);
  return *this;
}

void ProcessWork::add(const ProcessWork& other) {
  threads += other.threads;
  calls += other.calls;
  launches += other.launches;
  waiting += other.waiting;
}

ThreadsAtWork::Open& ThreadsAtWork::thread(const Line& line) {
  Key key(line.process->number, line.tid);
  if (last_ && key == last_key_) return *last_;
  auto at = open_.find(key);
  if (at == open_.end()) {
    if (open_.size() >= MAX_THREADS) put_quiet_away();
    at = open_.try_emplace(key).first;
    ThreadWork& work = at->second.work;
    work.process = line.process->number;
    work.pid = line.pid;
    work.tid = line.tid;
    work.first_call = line.ts;
    work.process_began = line.process->began;
    ProcessWork& process = open_processes_[key.first].work;
    process.number = key.first;
    process.pid = line.pid;
    process.host = line.process->host;
    process.comm = line.process->comm;
    process.command = line.process->command;
    process.rank = line.process->rank;
  }
  last_key_ = key;
  return *(last_ = &at->second);
}

void ThreadsAtWork::line(const Line& line) {
  bool is_about_process = line.kind == LineKind::process || line.kind == LineKind::communicator;
  if (is_about_process && line.process) process(line);
  if (line.kind == LineKind::call) call(line);
  for (const Process* gone : line.gone) {
    bool seen = gone->pid == line.pid;  // else it was only quiet for a long time
    close_process(gone->number, seen ? line.ts : 0);
  }
}

void ThreadsAtWork::process(const Line& line) {
  std::uint64_t number = line.process->number;
  if (auto known = open_processes_.find(number); known != open_processes_.end()) {
    known->second.work.comm = line.process->comm;
    known->second.work.command = line.process->command;
    known->second.work.rank = line.process->rank;
  }
  if (!line.new_program) return;
  for (auto at = open_.lower_bound({number, 0}); at != open_.end() && at->first.first == number;
       ++at) {
    settle(at->second, line.ts);
    close_segment(at->second);
  }
}

void ThreadsAtWork::call(const Line& line) {
  Open& open = thread(line);
  ThreadWork& work = open.work;
  work.first_call = std::min(work.first_call, line.ts);
  work.last_end = std::max(work.last_end, line.end());
  work.all.recorded++;
  if (is_counted(line)) counted(line, open);
  if (line.ts < part_.from) work.at_from = work.all;
  if (line.ts < part_.to) work.at_to = work.all;
}

void ThreadsAtWork::counted(const Line& line, Open& open) {
  ThreadWork& work = open.work;
  Work kind = line.work;
  Spent& all = work.all;
  all.idle = idle_.idle_until_now();
  if (!work.set_up.ts && kind != Work::setup && kind != Work::other) work.set_up = {line.ts, all};
  open.segment.end.ts = std::max(open.segment.end.ts, line.end());
  if (kind == Work::launch) launched(line, open);
  all.calls++;
  all.add(kind, line.duration);
  all.kernels = saturating_sum(all.kernels, kernel_runs(line));
  if (kind == Work::launch && open.keeps_launches) open.launches_end = {line.end(), all};
  if (kind == Work::to_device && line.size >= LARGE && line.has(Field::duration))
    copied(line, open);
  if (line.unfinished)
    open.unfinished = {line.ts, kind};
  else if (line.ts > open.unfinished.ts)
    open.unfinished = {};
  if (waits(kind, line)) close_segment(open);
}

// A thread's last call may not have returned: the thread was in it until the end. It may have begun
// before the files did.
void ThreadsAtWork::settle(Open& open, std::uint64_t end) const {
  std::uint64_t since = std::max(open.unfinished.ts, part_.recorded_from);
  if (open.unfinished.ts && end > since) {
    open.work.all.add(open.unfinished.kind, end - since);
    if (part_.has(since)) open.work.at_to.add(open.unfinished.kind, part_.clipped(end) - since);
    open.work.last_end = std::max(open.work.last_end, end);
    if (open.segment.launches) open.segment.end.ts = open.work.last_end;
  }
  open.unfinished = {};
}

void ThreadsAtWork::copied(const Line& line, Open& open) {
  auto& copies = open.work.large_copies;
  Moment now{line.end(), open.work.all};
  if (open.copied_since_launch)
    copies.back() = now;
  else if (copies.size() < MAX_COPIES && copies_ < MAX_ALL_COPIES && ++copies_)
    copies.push_back(now);
  open.copied_since_launch = !copies.empty() && copies.back().ts == now.ts;
}

void ThreadsAtWork::launched(const Line& line, Open& open) {
  Segment& segment = open.segment;
  open.work.launches_in_part += part_.has(line);
  launches_++;
  if (!open.work.launches++) open.keeps_launches = sequences_ < MAX_SEQUENCES && ++sequences_;
  open.copied_since_launch = false;
  if (!segment.launches++) {
    segment.first = line.kernel;
    segment.begin = {line.ts, open.work.all};
    segment.first_call = line.id;
  }
  segment.last = line.kernel;
  if (!open.keeps_launches) return;
  if (open.launches.size() == 2 * MAX_LAUNCHES)
    open.launches.erase(open.launches.begin(), open.launches.begin() + MAX_LAUNCHES);
  open.launches_end_before = open.launches_end;
  bool runs_several = line.content && line.content->kernels > 1;
  open.launches.push_back(
      {{line.ts, open.work.all}, line.id, line.kernel, runs_several ? line.content->number : 0});
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
      work.longest_end = open.launches_end;
      work.longest_end_before = open.launches_end_before;
      work.longest_launches = segment.launches;
      work.longest_segment = work.segments.size();
    }
    work.segments.push_back(segment);
  }
  open.launches.clear();
}

ThreadsAtWork::Threads::iterator ThreadsAtWork::close(Threads::iterator thread, std::uint64_t end) {
  Open& open = thread->second;
  settle(open, end);
  close_segment(open);
  ThreadWork& work = open.work;
  sequences_ -= open.keeps_launches;
  OpenProcess& process = open_processes_[thread->first.first];
  Spent spent = work.in_part();
  if (part_.is_whole() || spent.recorded) {
    process.work.threads++;
    process.work.calls += spent.recorded;
    process.work.launches += work.launches_in_part;
    process.work.waiting += spent.waiting;
  }
  keep_busiest(process.busiest, std::move(work));
  last_ = nullptr;
  return open_.erase(thread);
}

void ThreadsAtWork::keep_busiest(std::optional<ThreadWork>& busiest, ThreadWork work) {
  if (!wanted_.has(work.pid, work.tid) || (busiest && !BusierThread()(work, *busiest)))
    return give_up(work);
  if (busiest) {
    sequences_ -= !busiest->longest.empty();
    give_up(*busiest);
  }
  sequences_ += !work.longest.empty();
  busiest = std::move(work);
}

void ThreadsAtWork::keep(ThreadWork work) {
  sequences_ -= !work.longest.empty();
  if (auto left = closed_.add(std::move(work))) give_up(*left);
}

void ThreadsAtWork::give_up(const ThreadWork& work) {
  segments_ -= work.segments.size();
  copies_ -= work.large_copies.size();
}

// `end` 0: it is not known when, or whether, it ended.
void ThreadsAtWork::close_process(std::uint64_t number, std::uint64_t end) {
  for (auto at = open_.lower_bound({number, 0}); at != open_.end() && at->first.first == number;) {
    at->second.work.process_ended = end;
    at = close(at, end);
  }
  auto process = open_processes_.extract(number);
  if (process.empty()) return;
  if (auto& busiest = process.mapped().busiest) keep(std::move(*busiest));
  if (!process.mapped().work.threads) return;
  if (auto left = closed_processes_.add(process.mapped().work)) {
    others_.add(*left);
    other_processes_++;
  }
}

// Puts away half of them, so that this is not done often.
void ThreadsAtWork::put_quiet_away() {
  std::vector<std::uint64_t> ends;
  for (const auto& [key, open] : open_) ends.push_back(open.work.last_end);
  auto middle = ends.begin() + static_cast<std::ptrdiff_t>(ends.size() / 2);
  std::nth_element(ends.begin(), middle, ends.end());
  for (auto at = open_.begin(); at != open_.end();) {
    if (at->second.work.last_end > *middle) {
      ++at;
    } else {
      at = close(at, 0);
      put_away_++;
    }
  }
}

void ThreadsAtWork::finish(const TraceFacts& facts) {
  for (auto at = open_.begin(); at != open_.end();) at = close(at, facts.duration());
  while (!open_processes_.empty()) close_process(open_processes_.begin()->first, 0);
  threads_ = closed_.take();
  processes_ = closed_processes_.take();
}

}  // namespace cudabpf::analyze
