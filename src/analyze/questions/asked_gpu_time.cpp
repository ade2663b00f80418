#include "analyze/questions/asked_gpu_time.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "analyze/circumstances/issuing_calls.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {

std::uint64_t key_of(std::uint64_t process, std::uint32_t tid) { return process << 32 | tid; }

}  // namespace

void AskedGpuTime::line(const Line& line) {
  const IssuingCall* call = line.issuer;
  if (line.kind != LineKind::gpu_work || !call || !line.has(Field::duration)) return;
  std::uint64_t key = key_of(call->process, call->tid);
  if (threads_.size() >= MAX_THREADS && !threads_.contains(key)) return;
  auto thread = threads_.emplace(key, static_cast<std::uint32_t>(threads_.size())).first;
  works_.push_back({call->ts, line.duration, thread->second});
  if (works_.size() >= most_) merge();
}

void AskedGpuTime::sort() {
  std::sort(works_.begin(), works_.end(), [](const Work& a, const Work& b) {
    return std::tuple(a.thread, a.asked, a.time) < std::tuple(b.thread, b.asked, b.time);
  });
}

// Leaves half of them, and at most one more for each thread.
void AskedGpuTime::merge() {
  sort();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < works_.size();) {
    Work work = works_[i++];
    if (i < works_.size() && works_[i].thread == work.thread)
      work.time = saturating_sum(work.time, works_[i++].time);
    works_[kept++] = work;
  }
  works_.resize(kept);
}

void AskedGpuTime::finish(const TraceFacts&) { sort(); }

std::uint64_t AskedGpuTime::between(std::uint64_t process, std::uint32_t tid, std::uint64_t begin,
                                    std::uint64_t end) const {
  auto thread = threads_.find(key_of(process, tid));
  if (thread == threads_.end()) return 0;
  auto first_from = [&](std::uint64_t ts) {
    return std::partition_point(works_.begin(), works_.end(), [&](const Work& work) {
      return std::pair(work.thread, work.asked) < std::pair(thread->second, ts);
    });
  };
  std::uint64_t time = 0;
  auto last = first_from(end);
  for (auto work = first_from(begin); work < last; ++work) time = saturating_sum(time, work->time);
  return time;
}

}  // namespace cudabpf::analyze
