#include "analyze/questions/asked_gpu_time.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "analyze/circumstances/processes.hpp"
#include "analyze/work.hpp"
#include "trace/header.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {

std::uint64_t key_of(std::uint64_t process, std::uint32_t tid) { return process << 32 | tid; }

}  // namespace

void AskedGpuTime::line(const Line& line) {
  if (line.kind == LineKind::call) {
    if (told_) asked(line);
  } else if (line.kind == LineKind::gpu_work) {
    did(line);
  } else if (line.kind == LineKind::header) {
    told_ |= line.header->measures_gpus();
  }
}

void AskedGpuTime::asked(const Line& line) {
  if (!gives_work(line.work) || line.failed()) return;
  std::uint64_t key = key_of(line.process->number, line.tid);
  auto thread = threads_.find(key);
  if (thread == threads_.end()) {
    if (threads_.size() >= MAX_THREADS) return;
    thread = threads_.emplace(key, static_cast<std::uint32_t>(threads_.size())).first;
  }
  RememberedCall call;
  call.id = line.id;
  call.ts = line.ts;
  call.place = thread->second;
  calls_.add(call);  // they are kept when their work has come: a graph's has many lines
}

void AskedGpuTime::did(const Line& line) {
  const RememberedCall* call = calls_.find(line.call);
  if (!call || !line.has(Field::duration)) return;
  works_.push_back({call->ts, line.duration, call->place});
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
