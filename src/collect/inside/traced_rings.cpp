#include "collect/inside/traced_rings.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <queue>
#include <utility>

#include "collect/inside/process_records.hpp"
#include "util/system/clock.hpp"
#include "util/system/pidfd.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf {

namespace {

// Processes may keep gigabytes of records in their rings; only this much of all is handed over at
// once, also of those that have ended.
constexpr std::size_t AT_ONCE = 4u << 20;
constexpr std::uint64_t LOOK_FOR_DEAD_EVERY_NS = 1'000'000'000;
// The status of a process is known when its parent has waited for it.
constexpr std::uint64_t WAIT_FOR_STATUS_NS = 300'000'000;
constexpr std::uint32_t NO_THREAD_OF_OURS = 1 << 30;  // beyond every id of a thread

// Stands for a thread that is unknown except for the ring that it writes to.
std::uint32_t unknown_thread(std::size_t ring) {
  return NO_THREAD_OF_OURS | static_cast<std::uint32_t>(ring);
}

std::span<const std::byte> record_bytes(const auto& record) {
  return std::as_bytes(std::span(&record, 1));
}

// A thread that could not be found may be alive.
bool is_gone(std::uint32_t pid, std::uint32_t tid) {
  if (tid & NO_THREAD_OF_OURS) return false;
  std::string path = fmt::format("/proc/{}/task/{}", pid, tid);
  return access(path.c_str(), F_OK) != 0 && errno == ENOENT;
}

bool may_come_from_inside(const abi::cb_head& head) {
  switch (head.kind) {
    case abi::CB_ENTRY:
    case abi::CB_RETURN:
    case abi::CB_NAME:
    case abi::CB_DRIVER:
    case abi::CB_DRIVER_RETURN:
    case abi::CB_GPU_TIMES:
    case abi::CB_GPU_NAME:
    case abi::CB_GPU_WORK:
    case abi::CB_GPU_BATCH:
    case abi::CB_GPU_WINDOW:
    case abi::CB_RANGE:
    case abi::CB_STACK:
    case abi::CB_CALL_STACK:
    case abi::CB_PYTHON:
    case abi::CB_LT_LAYOUT:
    case abi::CB_BLAS_HANDLE:
    case abi::CB_HOLDER:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::uint32_t TracedRings::Traced::tid(std::size_t ring) const {
  if (auto known = threads.find(ring); known != threads.end()) return known->second;
  std::uint32_t inner = is.shared->ring(ring).tid();
  if (!inner) return unknown_thread(ring);  // it is only just being taken
  auto found = inner < NO_THREAD_OF_OURS ? ids.find(inner, now_ns(CLOCK_MONOTONIC)) : std::nullopt;
  return threads[ring] = found.value_or(unknown_thread(ring));
}

// A thread that cannot be found must not be taken for another.
std::uint32_t TracedRings::Traced::outer(std::uint32_t lane, std::uint32_t inner) {
  if (is.inner_pid == pid()) return inner;
  constexpr std::size_t MAX = 1 << 12;
  if (lanes.size() >= MAX) lanes.clear();
  auto [known, is_new] = lanes.try_emplace(lane, 0);
  if (is_new)
    known->second = ids.find(inner, now_ns(CLOCK_MONOTONIC)).value_or(inner | NO_THREAD_OF_OURS);
  return known->second;
}

void TracedRings::report(std::span<const std::byte> record, const OnRecord& on_record) {
  if (!reports_processes_) return;
  closed_.entered++;
  closed_.emitted++;
  on_record(record);
}

void TracedRings::add(Newcomer newcomer) { waiting_.emplace_back(std::move(newcomer)); }

void TracedRings::let_in(const OnRecord& on_record) {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    auto newcomer = next++;
    auto old = std::find_if(all_.begin(), all_.end(), [&](const Traced& process) {
      return process.pid() == newcomer->pid();
    });
    if (old == all_.end()) {
      report(record_bytes(newcomer->is.record), on_record);
      all_.splice(all_.end(), waiting_, newcomer);
      continue;
    }
    old->is_succeeded = true;
    if (!old->gone_since) old->gone_since = now_ns(CLOCK_MONOTONIC);
  }
}

// Returns its size.
std::size_t TracedRings::hand_over(Traced& process, std::size_t ring, const OnRecord& on_record) {
  alignas(8) static thread_local std::byte copy[SharedRings::LARGEST];
  auto record = process.is.shared->ring(ring).take(copy);
  abi::cb_head head;
  std::memcpy(&head, copy, sizeof(head));
  head.ts = clock_.ns(head.ts);
  head.pid = process.pid();
  head.tid = process.tid(ring);
  if (!may_come_from_inside(head)) head.kind = 0;  // then it is unknown, and is refused
  std::memcpy(copy, &head, sizeof(head));
  if (head.kind == abi::CB_GPU_BATCH && record.size() >= sizeof(abi::cb_gpu_batch)) {
    auto& batch = *reinterpret_cast<abi::cb_gpu_batch*>(copy);
    batch.thread = process.outer(batch.lane, batch.thread);
  }
  on_record(record);
  return record.size();
}

TracedRings::Pass TracedRings::look(std::span<Traced* const> processes) {
  Pass pass;
  pass.began = now_ns(CLOCK_MONOTONIC);
  // A record made after this moment waits for the next pass, or it could come before an earlier one
  // of another thread, in a ring that has been looked at already.
  pass.until = clock_.now();
  for (Traced* process : processes) {
    process->is.shared->note_read();
    for (std::size_t i = 0; i < process->is.shared->rings(); i++)
      pass.much |= process->is.shared->ring(i).look();
  }
  pass.looked = clock_.now();
  return pass;
}

// A thread's records come in their order, those of several threads by time.
std::optional<std::uint64_t> TracedRings::merge(std::span<Traced* const> processes,
                                                const Pass& pass, std::size_t most_bytes,
                                                const OnRecord& on_record) {
  struct Next {
    std::uint64_t ts;
    Traced* process;
    std::size_t ring;
    bool operator<(const Next& other) const { return ts > other.ts; }  // the earliest on top
  };
  std::priority_queue<Next> waiting;
  auto wait = [&](Traced* process, std::size_t i) {
    if (auto ts = process->is.shared->ring(i).next(pass.until, pass.looked))
      waiting.push({*ts, process, i});
  };
  for (Traced* process : processes)
    for (std::size_t i = 0; i < process->is.shared->rings(); i++) wait(process, i);
  for (std::size_t bytes = 0; !waiting.empty() && bytes < most_bytes;) {
    Next first = waiting.top();
    waiting.pop();
    ThreadRing& ring = first.process->is.shared->ring(first.ring);
    // The same thread goes on while no other thread's record is earlier.
    for (;;) {
      bytes += hand_over(*first.process, first.ring, on_record);
      auto ts = ring.next(pass.until, pass.looked);
      if (!ts) break;
      if (bytes < most_bytes && (waiting.empty() || *ts <= waiting.top().ts)) continue;
      waiting.push({*ts, first.process, first.ring});
      break;
    }
  }
  return waiting.empty() ? std::nullopt : std::optional(waiting.top().ts);
}

void TracedRings::release_rings(Traced& process, bool look_for_dead, const OnRecord& on_record) {
  for (std::size_t i = 0; i < process.is.shared->rings(); i++) {
    ThreadRing& ring = process.is.shared->ring(i);
    if (look_for_dead && ring.in_use() && ring.tid() && is_gone(process.pid(), process.tid(i)))
      ring.leave();
    if (!ring.was_left()) continue;
    abi::cb_head left{};
    left.ts = now_ns(CLOCK_MONOTONIC);
    left.pid = process.pid();
    left.tid = process.tid(i);
    left.drops = ring.drops();
    left.kind = abi::CB_THREAD_EXIT;
    left.flags = abi::CB_RETURN_UNSEEN;
    report(record_bytes(left), on_record);
    ring.free();
    process.threads.erase(i);
  }
}

void TracedRings::close_books(Traced& process) {
  SharedRings::Books books = process.is.shared->close_books();
  note_broken_rings(process);
  if (!books.fit) doubt(process, "what it has counted does not fit the records that it wrote");
  closed_ += books.counts;
  closed_not_looked_up_ += process.ids.not_looked_up();
}

void TracedRings::note_broken_rings(Traced& process) {
  std::uint64_t broken = process.is.shared->broken();
  if (broken == process.broken_rings) return;
  doubt(process, fmt::format("the records of {} of its threads made no sense from some point on",
                             broken - process.broken_rings));
  process.broken_rings = broken;
}

void TracedRings::doubt(const Traced& process, std::string_view why) {
  const char* comm = process.is.record.comm;
  LossEvent loss;
  loss.reason = Loss::process_inconsistent;
  loss.detail = fmt::format("pid {} ({}): {}", process.pid(),
                            std::string_view(comm, strnlen(comm, CB_COMM)), why);
  doubts_.push_back(std::move(loss));
}

std::vector<LossEvent> TracedRings::audit(bool last) {
  if (last) all_.splice(all_.end(), waiting_);
  for (Traced& process : all_) {
    if (last)
      close_books(process);
    else
      note_broken_rings(process);
  }
  if (last) all_.clear();
  return std::exchange(doubts_, {});
}

bool TracedRings::is_to_be_closed(Traced& process, std::uint64_t began,
                                  std::optional<int>& status) const {
  auto pid = static_cast<pid_t>(process.pid());
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  if (!process.gone_since && has_ended(pid, process.is.pidfd)) process.gone_since = now;
  // The next pass reads what it has left.
  if (!process.gone_since || process.gone_since > began) return false;
  if (process.has_left || process.is_succeeded) return true;
  status = exit_status(pid, process.is.pidfd.get());
  return status || now - process.gone_since >= WAIT_FOR_STATUS_NS;
}

void TracedRings::close_gone(std::uint64_t began, const OnRecord& on_record) {
  for (auto process = all_.begin(); process != all_.end();) {
    std::optional<int> status;
    if (!is_to_be_closed(*process, began, status)) {
      ++process;
      continue;
    }
    if (!process->is_succeeded) report_exit(*process, status, on_record);
    close_books(*process);
    process = all_.erase(process);
  }
}

void TracedRings::leave(std::uint32_t pid) {
  for (All* processes : {&all_, &waiting_})
    for (Traced& process : *processes) {
      if (process.pid() != pid) continue;
      process.has_left = true;
      if (!process.gone_since) process.gone_since = now_ns(CLOCK_MONOTONIC);
    }
}

void TracedRings::report_exit(const Traced& process, std::optional<int> status,
                              const OnRecord& on_record) {
  abi::cb_process exit = process.is.record;
  exit.head.drops = drops({process.pid(), process.pid()});
  exit.head.kind = abi::CB_EXIT;
  exit.head.ts = now_ns(CLOCK_MONOTONIC);
  exit.head.result = status.value_or(0);
  exit.head.flags = abi::CB_RETURN_UNSEEN;
  if (!status) exit.head.flags |= abi::CB_STATUS_UNSEEN;
  report(record_bytes(exit), on_record);
}

Source::Polled TracedRings::read(const OnRecord& on_record) {
  if (!pass_) let_in(on_record);
  std::vector<Traced*> processes;
  for (Traced& process : all_) processes.push_back(&process);
  if (!pass_) pass_ = look(processes);
  auto next = merge(processes, *pass_, AT_ONCE, on_record);
  Source::Polled polled{.much = pass_->much, .until = pass_->began};
  polled.unfinished = next || !waiting_.empty();
  if (next) polled.until = std::min(polled.until, clock_.ns(*next));
  // No record of these newcomers has been handed over yet.
  for (const Traced& newcomer : waiting_)
    polled.until = std::min<std::uint64_t>(polled.until, newcomer.is.record.head.ts);
  if (next) return polled;
  std::uint64_t began = pass_->began;
  pass_.reset();
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  bool look_for_dead = now - looked_for_dead_ > LOOK_FOR_DEAD_EVERY_NS;
  if (look_for_dead) {
    looked_for_dead_ = now;
    look_for_dead = Procfs().is_ours();  // in that of another pid namespace, they cannot be found
  }
  for (Traced& process : all_) release_rings(process, look_for_dead, on_record);
  close_gone(began, on_record);
  if (!waiting_.empty()) let_in(on_record);
  return polled;
}

void TracedRings::abandon() {
  for (All* processes : {&all_, &waiting_})
    for (Traced& process : *processes) process.is.shared->abandon();
  pass_.reset();
}

InsideCounts TracedRings::counts() const {
  InsideCounts sum = closed_;
  for (const All* processes : {&all_, &waiting_})
    for (const Traced& process : *processes) sum += process.is.shared->counts();
  return sum;
}

std::uint64_t TracedRings::threads_not_looked_up() const {
  std::uint64_t sum = closed_not_looked_up_;
  for (const Traced& process : all_) sum += process.ids.not_looked_up();
  return sum;
}

std::uint32_t TracedRings::drops(ThreadId thread) const {
  for (const Traced& process : all_) {
    if (process.pid() != thread.pid) continue;
    for (std::size_t i = 0; i < process.is.shared->rings(); i++) {
      const ThreadRing& ring = process.is.shared->ring(i);
      if (ring.in_use() && process.tid(i) == thread.tid) return ring.drops();
    }
  }
  return 0;
}

}  // namespace cudabpf
