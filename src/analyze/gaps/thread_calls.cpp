#include "analyze/gaps/thread_calls.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "analyze/derived/processes.hpp"
#include "analyze/work.hpp"
#include "util/limited.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

void ThreadCalls::call(const Line& line) {
  std::uint64_t number = line.process->number;
  if (line.pid != last_pid_ || number != last_process_) {
    if (has_room_for(processes_, line.pid, MAX_PIDS)) processes_[line.pid] = number;
    last_pid_ = line.pid;
    last_process_ = number;
  }
  if (is_counted(line)) keep(line);
}

void ThreadCalls::keep(const Line& line) {
  Key key{line.process->number, line.tid};
  auto at = threads_.find(key);
  if (at == threads_.end()) {
    if (threads_.size() >= MAX_THREADS) drop_quiet_threads();
    at = threads_.try_emplace(key).first;
    at->second.kept_since = dropped_until_;
  }
  Thread& thread = at->second;
  Work work = line.work;
  Span span{line.ts, saturating_sum(line.ts, line.duration), line.name, !line.has(Field::duration),
            waits(work, line)};
  // A thread makes one call after the other; a trace that says otherwise is cut to that.
  if (!thread.calls.empty()) span.begin = std::max(span.begin, thread.calls.back().end);
  if (span.end < span.begin) return;
  thread.calls.push_back(span);
  Together& together =
      together_.try_emplace(key.process, Together{key.tid, false, {}}).first->second;
  together.several |= together.tid != key.tid;
  if (!span.waits && work != Work::to_host) together.in_calls.add(span.begin, span.end);
  order_.push_back({key, span.begin});
  if (order_.size() > most_) drop_oldest();
}

void ThreadCalls::drop_oldest() {
  auto [key, ts] = order_.front();
  order_.pop_front();
  if (auto at = together_.find(key.process); at != together_.end())
    at->second.in_calls.forget_until(ts);
  auto oldest = threads_.find(key);
  if (oldest == threads_.end() || oldest->second.calls.empty()) return;
  oldest->second.kept_since = std::max(oldest->second.kept_since, oldest->second.calls.front().end);
  oldest->second.calls.pop_front();
}

// Half of them, so that this is not done often.
void ThreadCalls::drop_quiet_threads() {
  auto last_of = [](const Thread& thread) {
    return thread.calls.empty() ? thread.kept_since : thread.calls.back().end;
  };
  std::vector<std::uint64_t> ends;
  ends.reserve(threads_.size());
  for (const auto& [key, thread] : threads_) ends.push_back(last_of(thread));
  auto middle = ends.begin() + static_cast<std::ptrdiff_t>(ends.size() / 2);
  std::nth_element(ends.begin(), middle, ends.end());
  dropped_until_ = std::max(dropped_until_, *middle);
  std::erase_if(threads_, [&](const auto& one) { return last_of(one.second) <= *middle; });
  std::unordered_set<std::uint64_t> left;
  for (const auto& [key, thread] : threads_) left.insert(key.process);
  std::erase_if(together_, [&](const auto& one) { return !left.contains(one.first); });
}

bool ThreadCalls::waited(const IssuingCall& issuer) {
  auto thread = threads_.find({issuer.process, issuer.tid});
  if (thread == threads_.end()) return false;
  auto& calls = thread->second.calls;
  auto at = std::lower_bound(calls.begin(), calls.end(), issuer.end,
                             [](const Span& call, std::uint64_t ts) { return call.end < ts; });
  bool kept = at != calls.end() && at->end == issuer.end && at->begin >= issuer.ts;
  return kept && !std::exchange(at->waits, true);
}

std::vector<PathWait> ThreadCalls::waits_of(std::uint64_t process, std::uint32_t tid,
                                            std::uint64_t begin, std::uint64_t end) const {
  std::vector<PathWait> waits;
  auto thread = threads_.find({process, tid});
  if (thread == threads_.end()) return waits;
  for (const Span& call : thread->second.calls)
    if (call.waits && !call.untimed && call.end > begin && call.end <= end)
      waits.push_back({call.begin, call.end});
  return waits;
}

std::uint64_t ThreadCalls::process_of(std::uint32_t pid) const {
  auto at = processes_.find(pid);
  return at == processes_.end() ? 0 : at->second;
}

void ThreadCalls::look_at(std::uint64_t process, std::uint32_t tid, std::uint64_t begin,
                          std::uint64_t end, std::uint64_t issued, ThreadTime& found) const {
  constexpr std::size_t FUNCTIONS = 64;  // kept apart; how long all took is exact
  found.functions.clear();
  found.in_calls = found.others = found.begun = found.untimed = 0;
  auto thread = threads_.find({process, tid});
  found.known = thread != threads_.end() && thread->second.kept_since <= begin;
  if (!found.known) return;
  auto process_calls = together_.find(process);
  const InCalls* together = process_calls != together_.end() && process_calls->second.several
                                ? &process_calls->second.in_calls
                                : nullptr;
  std::uint64_t outside_since = begin;
  auto outside_until = [&](std::uint64_t ts) {
    if (together) found.others += together->time_in(outside_since, ts);
  };
  const auto& calls = thread->second.calls;
  auto at = std::lower_bound(calls.begin(), calls.end(), begin,
                             [](const Span& call, std::uint64_t ts) { return call.end < ts; });
  for (; at != calls.end() && at->begin < end; ++at) {
    if (at->begin >= begin) {
      found.begun += at->begin < issued;
      found.untimed += at->untimed;
    }
    std::uint64_t since = std::max(at->begin, begin), until = std::min(at->end, end);
    if (until <= since) continue;
    outside_until(since);
    outside_since = until;
    found.in_calls += until - since;
    auto same = std::find_if(found.functions.begin(), found.functions.end(),
                             [&](const auto& one) { return one.name == at->name; });
    if (same != found.functions.end())
      same->time += until - since;
    else if (found.functions.size() < FUNCTIONS)
      found.functions.push_back({at->name, until - since});
  }
  outside_until(end);
  std::sort(found.functions.begin(), found.functions.end(),
            [](const auto& a, const auto& b) { return a.time > b.time; });
}

}  // namespace cudabpf::analyze
