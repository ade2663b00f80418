#include "analyze/questions/issued_gpu_time.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "analyze/derived/issuing_calls.hpp"
#include "util/limited.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {

std::uint64_t key_of(std::uint64_t process, std::uint32_t tid) { return process << 32 | tid; }

}  // namespace

void IssuedGpuTime::line(const Line& line) {
  const IssuingCall* call = line.issuer;
  if (line.kind != LineKind::gpu_operation || !call || !line.has(Field::duration)) return;
  std::uint64_t key = key_of(call->process, call->tid);
  if (!has_room_for(threads_, key, MAX_THREADS)) return;
  auto thread = threads_.emplace(key, static_cast<std::uint32_t>(threads_.size())).first;
  operations_.push_back({call->ts, line.duration, thread->second});
  if (operations_.size() >= most_) merge();
}

void IssuedGpuTime::sort() {
  std::sort(operations_.begin(), operations_.end(), [](const Work& a, const Work& b) {
    return std::tuple(a.thread, a.issued, a.time) < std::tuple(b.thread, b.issued, b.time);
  });
}

// Leaves half of them, and at most one more for each thread.
void IssuedGpuTime::merge() {
  sort();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < operations_.size();) {
    Work work = operations_[i++];
    if (i < operations_.size() && operations_[i].thread == work.thread)
      work.time = saturating_sum(work.time, operations_[i++].time);
    operations_[kept++] = work;
  }
  operations_.resize(kept);
}

void IssuedGpuTime::finish(const TraceFacts&) { sort(); }

std::uint64_t IssuedGpuTime::between(std::uint64_t process, std::uint32_t tid, std::uint64_t begin,
                                     std::uint64_t end) const {
  auto thread = threads_.find(key_of(process, tid));
  if (thread == threads_.end()) return 0;
  auto first_from = [&](std::uint64_t ts) {
    return std::partition_point(operations_.begin(), operations_.end(), [&](const Work& work) {
      return std::pair(work.thread, work.issued) < std::pair(thread->second, ts);
    });
  };
  std::uint64_t time = 0;
  auto last = first_from(end);
  for (auto work = first_from(begin); work < last; ++work) time = saturating_sum(time, work->time);
  return time;
}

}  // namespace cudabpf::analyze
